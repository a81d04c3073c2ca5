SELECT json_group_array(json_array(
  id, epoch, kind, key, slot, slots, prio, attempt, crashes, continuation, started_at, cancelled_at, state, trace
)) FROM job WHERE id IN (SELECT value FROM json_each(:ids))
