UPDATE job SET state = 1, slot = NULL, due_at = due_at + :hold WHERE due_at < :hold
