UPDATE actions_run SET variables = '{}' WHERE id = ANY(ARRAY(SELECT run FROM actions_step WHERE profile_id = :profile))
