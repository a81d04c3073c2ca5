INSERT INTO event_outbox (token, owner, node, at, count, body, words, kinds, numbers, credit_pools, credits)
VALUES (:token, :owner, :node, :at, :count, :body, :words::text[], :kinds::text[], :numbers::bigint[], :credit_pools::text[], :credits::bigint[])
