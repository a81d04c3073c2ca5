-- All counts of a commit at once. `true` tells the parser that ON is not the join's.
INSERT INTO tally (word, kind, node, number)
SELECT value ->> 0, value ->> 1, 0, value ->> 2 FROM json_each(:counts) WHERE true
ON CONFLICT (word, kind, node) DO UPDATE SET number = tally.number + excluded.number
