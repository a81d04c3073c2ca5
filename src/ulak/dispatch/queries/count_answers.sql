SELECT state, count(*) FROM (SELECT state FROM dispatch_offer WHERE state <> 'OPEN' ORDER BY id DESC LIMIT :n) AS recent GROUP BY state
