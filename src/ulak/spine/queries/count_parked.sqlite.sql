-- By key: what is put off or stands behind, each along its own index.
SELECT key, sum(number) FROM (
  SELECT key, count(*) AS number FROM job INDEXED BY job_behind WHERE state = 3 GROUP BY key
  UNION ALL
  SELECT key, count(*) FROM job INDEXED BY job_put_off WHERE state = 1 AND key IS NOT NULL GROUP BY key
) GROUP BY key
