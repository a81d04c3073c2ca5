SELECT channel_id, messages, segments FROM actions_sent WHERE hour = :hour AND channel_id = ANY(:channels::bigint[])
