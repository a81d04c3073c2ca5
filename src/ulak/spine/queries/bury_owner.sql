-- Another rescuer may still be busy with this owner's jobs, and it may have renewed its lease meanwhile. The row stays for
-- a while: the node rests, because the owner may live and make ids until it learns of its death.
UPDATE owner SET dead_at = :now
WHERE id = :id AND dead_at IS NULL AND lease_at < :now AND NOT EXISTS (SELECT 1 FROM job WHERE job.owner = :id AND state = 2)
