SELECT id FROM job WHERE state = 2 AND owner = :owner AND cancelled_at IS NOT NULL
