-- Whether each caller's transaction has left its token, and whether it may still do so. Only the token says that it has
-- committed: after a crash of the server a transaction's number may belong to another.
SELECT given.token,
       EXISTS (SELECT FROM event_outbox WHERE event_outbox.token = given.token)
         OR EXISTS (SELECT FROM event_block WHERE event_block.token = given.token),
       CASE WHEN given.xid::xid8 >= pg_snapshot_xmax(pg_current_snapshot()) THEN true
            ELSE pg_xact_status(given.xid::xid8) = 'in progress' END
FROM unnest(:tokens::bigint[], :xids::text[]) AS given (token, xid)
