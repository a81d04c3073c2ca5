INSERT INTO dispatch_candidate (task, search, list)
VALUES :rows
