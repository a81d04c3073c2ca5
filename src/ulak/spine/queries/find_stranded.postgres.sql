-- One look per key, however many jobs stand behind it.
WITH RECURSIVE line AS (
  (SELECT key FROM job WHERE state = 3 AND key > :after ORDER BY key LIMIT 1)
  UNION ALL
  SELECT (SELECT job.key FROM job WHERE state = 3 AND job.key > line.key ORDER BY job.key LIMIT 1) FROM line WHERE line.key IS NOT NULL
)
SELECT key FROM line WHERE key IS NOT NULL LIMIT :n
