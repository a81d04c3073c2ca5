UPDATE job
SET state = 2, epoch = epoch + 1, owner = :owner, attempt = attempt + 1, started_at = MAX(:now, due_at)
WHERE id IN (SELECT value FROM json_each(:ids))
