SELECT CASE WHEN month = :month THEN completed ELSE 0 END AS share, count(*), sum(CASE WHEN timeouts >= :pause_after THEN 1 ELSE 0 END), min(served_at)
FROM dispatch_helper WHERE active = 1 GROUP BY 1
