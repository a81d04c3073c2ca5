SELECT state, kind, key, slot, prio FROM job WHERE id = :id FOR UPDATE
