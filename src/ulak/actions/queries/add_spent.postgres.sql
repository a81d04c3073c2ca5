INSERT INTO actions_sent (channel_id, hour, messages, segments)
SELECT * FROM unnest(:channel_id::bigint[], :hour::bigint[], :messages::bigint[], :segments::bigint[])
ON CONFLICT (channel_id, hour) DO UPDATE SET messages = actions_sent.messages + excluded.messages, segments = actions_sent.segments + excluded.segments
