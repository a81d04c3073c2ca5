SELECT free + :bound::bigint - bound FROM capacity WHERE pool = :pool
