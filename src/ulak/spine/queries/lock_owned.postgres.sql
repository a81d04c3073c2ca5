-- The same rows again once their keys are held: somebody may have settled or rescued them meanwhile.
SELECT id, epoch, kind, key, attempt, crashes, hold, cancelled_at, started_at
FROM job WHERE state = 2 AND owner = :owner AND id = ANY(:ids::bigint[]) ORDER BY id FOR UPDATE
