SELECT kind, error_class, code, COUNT(*), MAX(died_at) FROM dead GROUP BY kind, error_class, code ORDER BY 4 DESC, 1 LIMIT :n
