UPDATE job
SET epoch = :epoch, turn = :turn, note = :note, crashes = :crashes, state = CASE WHEN state = 0 AND :crashes > 0 THEN 4 ELSE state END
WHERE id = :id
