INSERT INTO actions_sent (channel_id, hour, messages, segments)
VALUES :rows
ON CONFLICT (channel_id, hour) DO UPDATE SET messages = actions_sent.messages + excluded.messages, segments = actions_sent.segments + excluded.segments
