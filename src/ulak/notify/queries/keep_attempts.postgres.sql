INSERT INTO notify_attempt (id, url, job, number, at, millis, status, code)
SELECT * FROM unnest(
  :id::bigint[], :url::text[], :job::bigint[], :number::integer[], :at::bigint[], :millis::bigint[], :status::integer[], :code::text[]
)
