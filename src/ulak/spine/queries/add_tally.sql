INSERT INTO tally (word, kind, node, number) VALUES (:word, :kind, :node, :number)
ON CONFLICT (word, kind, node) DO UPDATE SET number = tally.number + excluded.number
