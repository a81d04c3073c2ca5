SELECT kind, paused, concurrency FROM kind_control ORDER BY kind
