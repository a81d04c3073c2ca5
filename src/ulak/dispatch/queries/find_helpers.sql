SELECT helper, id FROM dispatch_helper
WHERE helper IN (SELECT value FROM json_each(:names))
