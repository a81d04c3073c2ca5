INSERT INTO dispatch_decision (task, search, at, radius, found, excluded, counts)
VALUES :rows
