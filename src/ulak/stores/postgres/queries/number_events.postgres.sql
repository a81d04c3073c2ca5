-- One pass of the relay: numbers what is committed, in inbox order, and folds what those commits add.
WITH moved AS (
  DELETE FROM event_outbox WHERE count > 0 AND id = ANY(ARRAY(
    SELECT id FROM event_outbox WHERE count > 0 AND id > :floor ORDER BY id LIMIT :n
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
), numbered AS (
  INSERT INTO event_block (first, count, at, token, body)
  SELECT coalesce((SELECT first + count FROM event_block ORDER BY first DESC LIMIT 1), 1) + sum(count) OVER (ORDER BY id) - count,
         count, at, token, body
  FROM moved
)
SELECT count(*), max(id) FROM moved
