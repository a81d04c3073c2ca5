SELECT v.key, v.hash, v.content_hash, v.parts, v.body, v.change, v.pos
FROM json_each(:keys) AS k
JOIN changes_version AS v ON v.feed = :feed AND v.key = k.value AND v.pos = (
    SELECT MAX(l.pos) FROM changes_version AS l WHERE l.feed = :feed AND l.key = k.value AND l.pos <= :head
)
WHERE v.change <> 3 ORDER BY v.key
