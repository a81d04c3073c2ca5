UPDATE job SET state = CASE WHEN crashes = 0 THEN 0 ELSE 4 END, turn = given.column1
FROM (VALUES :rows) AS given WHERE id = given.column2
