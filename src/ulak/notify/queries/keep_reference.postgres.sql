INSERT INTO notify_reference (reference, job)
SELECT * FROM unnest(:reference::text[], :job::bigint[]) ON CONFLICT DO NOTHING
