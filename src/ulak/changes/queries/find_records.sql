SELECT v.key, v.hash, v.content_hash, v.parts, v.body, v.change, v.pos FROM changes_version AS v
WHERE v.feed = :feed AND v.change <> 3 AND v.pos IN (
    SELECT (SELECT MAX(l.pos) FROM changes_version AS l WHERE l.feed = :feed AND l.key = k.value AND l.pos <= :head)
    FROM json_each(:keys) AS k
)
ORDER BY +v.key
