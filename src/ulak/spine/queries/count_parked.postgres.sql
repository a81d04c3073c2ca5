-- Along two indexes, and no further than it matters.
SELECT wanted.key,
  (SELECT count(*) FROM (SELECT FROM job WHERE job.key = wanted.key AND state = 3 LIMIT :enough) AS behind)
  + (SELECT count(*) FROM (SELECT FROM job WHERE job.key = wanted.key AND state = 1 LIMIT :enough) AS put_off)
FROM unnest(:keys::text[]) AS wanted (key)
