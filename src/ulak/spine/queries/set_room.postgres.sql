UPDATE capacity SET free = bound - :used WHERE pool = :pool
