SELECT DISTINCT o.pos FROM changes_version AS n
JOIN changes_version AS o ON o.feed = n.feed AND o.key = n.key AND o.pos < n.pos
WHERE n.feed = :feed AND n.pos > :start AND n.pos <= :end
