SELECT id, kind, unique_key FROM job
WHERE kind = :kind AND unique_key IS NOT NULL AND unique_key = ANY(:keys::text[])
