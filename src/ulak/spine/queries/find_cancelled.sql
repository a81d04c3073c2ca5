SELECT id FROM job INDEXED BY job_owner WHERE state = 2 AND owner = :owner AND cancelled_at IS NOT NULL
