SELECT json_group_array(json_array(
  id, epoch, kind, key, prio, attempt, crashes, accepted_at, due_at, expires_at, CAST(payload AS TEXT)
)) FROM job WHERE id IN (SELECT value FROM json_each(:ids))
