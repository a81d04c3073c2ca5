-- Another rescuer may still be busy with this owner's jobs: the row goes with the last of them.
DELETE FROM owner WHERE id = :id AND NOT EXISTS (SELECT FROM job WHERE job.owner = :id AND state = 2)
