-- Who leaves makes no more ids, so its node is free at once. Work that could not be given back is for a rescuer to find.
DELETE FROM owner WHERE id = :id AND NOT EXISTS (SELECT FROM job WHERE job.owner = :id AND state = 2)
