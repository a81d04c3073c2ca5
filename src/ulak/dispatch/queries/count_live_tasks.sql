SELECT count(*) FROM dispatch_task WHERE state IN ('SEARCHING', 'OFFERED', 'ASSIGNED')
