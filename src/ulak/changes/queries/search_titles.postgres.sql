SELECT t.pos FROM changes_title AS t
JOIN changes_version AS v ON v.feed = t.feed AND v.pos = t.pos
WHERE t.feed = :feed AND t.pos <= :head AND strpos(t.title, :text) > 0 AND NOT EXISTS (
    SELECT 1 FROM changes_version AS n
    WHERE n.feed = v.feed AND n.key = v.key AND n.pos > v.pos AND n.pos <= :head
)
ORDER BY t.pos LIMIT :n
