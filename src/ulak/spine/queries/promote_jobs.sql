-- OR FAIL: an error undoes the batch anyway, so SQLite need not copy every page first (`neighbours`, end to end by key).
UPDATE OR FAIL job SET state = CASE WHEN crashes = 0 THEN 0 ELSE 4 END, slot = given.column1, turn = given.column3
FROM (VALUES :rows) AS given WHERE id = given.column2
