UPDATE actions_run SET state = :state, ended_at = :ended_at, ended_by = :ended_by WHERE id = :id
