-- What a caller's own transaction leaves: the same row that a commit of ours leaves, and a wake-up that goes with its commit.
WITH left_behind AS (
  INSERT INTO event_inbox (token, owner, node, at, count, body, words, kinds, numbers, credit_pools, credits)
  VALUES (
    :token, :owner, :node, :at, :count, :body, :words::text[], :kinds::text[], :numbers::bigint[], :credit_pools::text[], :credits::bigint[]
  )
)
SELECT pg_notify('ulak', :payload), pg_current_xact_id()::text
