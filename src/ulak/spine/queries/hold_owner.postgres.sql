-- The row of an owner that lives after all. Of one that does not it is held too: it can't renew its lease while its jobs
-- are being freed.
WITH found AS (SELECT lease_at FROM owner WHERE id = :id AND dead_at IS NULL FOR SHARE)
SELECT 1 FROM found WHERE lease_at >= :now
