UPDATE job SET cancelled_at = :now WHERE state = 2 AND id = :id
