-- What a caller's own transaction leaves: the same row that a commit of ours leaves, and wake-ups that go with its commit.
WITH left_behind AS (
  INSERT INTO event_outbox (token, owner, node, at, count, body, words, kinds, numbers, credit_pools, credits)
  VALUES (
    :token, :owner, :node, :at, :count, :body, :words::text[], :kinds::text[], :numbers::bigint[], :credit_pools::text[], :credits::bigint[]
  )
)
SELECT pg_notify('ulak', payload), pg_current_xact_id()::text FROM unnest(:payloads::text[]) AS payload
