SELECT v.key, v.hash, v.content_hash, v.parts, v.body, v.change, v.pos FROM changes_version AS v
WHERE v.feed = :feed AND v.key > :after AND v.key < :before AND v.pos <= :head AND v.change <> 3 AND NOT EXISTS (
    SELECT 1 FROM changes_version AS n
    WHERE n.feed = v.feed AND n.key = v.key AND n.pos > v.pos AND n.pos <= :head
)
ORDER BY v.key LIMIT :n
