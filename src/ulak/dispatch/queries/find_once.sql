SELECT once, id, digest FROM dispatch_task
WHERE once IN (SELECT value FROM json_each(:marks))
