UPDATE actions_run SET variables = '{}' WHERE id IN (SELECT run FROM actions_step WHERE profile_id = :profile)
