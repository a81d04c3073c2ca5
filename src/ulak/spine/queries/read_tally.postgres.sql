SELECT word, kind, sum(number)
FROM (
  SELECT word, kind, number FROM tally
  UNION ALL
  SELECT added.word, added.kind, added.number FROM event_outbox, unnest(words, kinds, numbers) AS added (word, kind, number)
) AS told
GROUP BY word, kind
