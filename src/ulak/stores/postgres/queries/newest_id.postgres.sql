-- The newest id that was ever given: new ones continue above it, even if the clock was set back.
SELECT greatest(
  (SELECT max(id) FROM job), (SELECT max(id) FROM past), (SELECT max(id) FROM dead),
  (SELECT max(token) FROM event_outbox), (SELECT max(token) FROM event_block), 0
)
