-- The newest id that was ever given: new ones continue above it, even if the clock was set back.
SELECT max(
  coalesce((SELECT max(id) FROM job), 0), coalesce((SELECT max(id) FROM past), 0), coalesce((SELECT max(id) FROM dead), 0),
  coalesce((SELECT token FROM event_block ORDER BY first DESC LIMIT 1), 0)
)
