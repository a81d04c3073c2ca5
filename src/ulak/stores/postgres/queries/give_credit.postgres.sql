UPDATE capacity SET free = free + :number WHERE pool = :pool
