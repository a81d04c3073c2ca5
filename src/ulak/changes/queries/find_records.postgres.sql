SELECT v.key, v.hash, v.content_hash, v.parts, v.body, v.change, v.pos
FROM unnest(:keys::text[]) AS k (key)
CROSS JOIN LATERAL (
    SELECT l.key, l.hash, l.content_hash, l.parts, l.body, l.change, l.pos FROM changes_version AS l
    WHERE l.feed = :feed AND l.key = k.key AND l.pos <= :head ORDER BY l.pos DESC LIMIT 1
) AS v
WHERE v.change <> 3 ORDER BY v.key
