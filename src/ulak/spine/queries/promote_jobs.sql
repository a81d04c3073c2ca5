UPDATE job SET state = 0, slot = :slot WHERE id = :id
