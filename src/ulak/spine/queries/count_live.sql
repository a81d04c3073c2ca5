SELECT kind, count(*) FROM job GROUP BY kind
