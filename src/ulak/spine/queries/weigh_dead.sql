SELECT id, coalesce(length(payload), 0)
FROM dead WHERE id < :before AND kind >= :low AND kind <= :high ORDER BY id DESC LIMIT :n
