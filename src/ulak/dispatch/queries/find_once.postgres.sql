SELECT once, id, digest FROM dispatch_task
WHERE once = ANY(:marks::text[])
