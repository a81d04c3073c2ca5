-- Commits without events leave only a token; when nobody can ask for it any more, it is folded and forgotten.
WITH moved AS (
  DELETE FROM event_outbox WHERE id = ANY(ARRAY(
    SELECT id FROM (SELECT id, count, at FROM event_outbox ORDER BY id LIMIT :n) AS oldest WHERE count = 0 AND at < :before
  ))
  RETURNING *
), tallied AS (
  INSERT INTO tally (word, kind, node, number)
  SELECT added.word, added.kind, node, sum(added.number)
  FROM moved, unnest(words, kinds, numbers) AS added (word, kind, number) GROUP BY 1, 2, 3
  ON CONFLICT (word, kind, node) DO UPDATE SET number = tally.number + excluded.number
), credited AS (
  INSERT INTO credit (pool, owner, held)
  SELECT added.pool, owner, sum(added.number) FROM moved, unnest(credit_pools, credits) AS added (pool, number) GROUP BY 1, 2
  ON CONFLICT (pool, owner) DO UPDATE SET held = credit.held + excluded.held
)
SELECT count(*) FROM moved
