SELECT count(*), count(ended_at) FROM actions_run
