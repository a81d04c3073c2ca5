INSERT INTO actions_former (profile_id, run)
SELECT * FROM unnest(:profile_id::bigint[], :run::bigint[])
ON CONFLICT DO NOTHING
