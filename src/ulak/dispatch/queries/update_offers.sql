UPDATE dispatch_offer SET state = :state, ended_at = :ended_at, released_at = :released_at, reason = :reason
WHERE id = :id AND state = :before AND released_at IS NULL
