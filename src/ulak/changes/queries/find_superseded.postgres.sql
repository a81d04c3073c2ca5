SELECT DISTINCT o.pos FROM changes_version AS n
CROSS JOIN LATERAL (
    SELECT l.pos FROM changes_version AS l
    WHERE l.feed = n.feed AND l.key = n.key AND l.pos < n.pos ORDER BY l.feed, l.key, l.pos OFFSET 0
) AS o
WHERE n.feed = :feed AND n.pos > :start AND n.pos <= :end
