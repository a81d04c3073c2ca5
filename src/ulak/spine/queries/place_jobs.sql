UPDATE job SET state = given.column1, slot = given.column3, turn = given.column4
FROM (VALUES :rows) AS given WHERE id = given.column2
