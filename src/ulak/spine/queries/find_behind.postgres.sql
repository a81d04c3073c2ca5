SELECT freed.key, first.id, first.kind, first.prio
FROM unnest(:keys::text[]) AS freed (key)
CROSS JOIN LATERAL (SELECT id, kind, prio FROM job WHERE job.key = freed.key AND state = 3 ORDER BY job.key, (CASE WHEN slots > 1 THEN prio ELSE 0 END), turn LIMIT 1) AS first
