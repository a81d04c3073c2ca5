SELECT run, step_order, provider_message_id FROM actions_step
WHERE provider_message_id IS NOT NULL AND channel_type <> 'webhook' AND provider_message_id IN (SELECT value FROM json_each(:names))
