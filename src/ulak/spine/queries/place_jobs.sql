UPDATE job SET state = :state, slot = :slot WHERE id = :id
