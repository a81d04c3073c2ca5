-- OR FAIL: an error undoes the batch anyway, so SQLite need not copy every page first (`neighbours`, end to end by key).
UPDATE OR FAIL job SET state = given.column1, slot = given.column3, turn = given.column4
FROM (VALUES :rows) AS given WHERE id = given.column2
