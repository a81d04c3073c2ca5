SELECT word, kind, sum(number) FROM tally GROUP BY word, kind
