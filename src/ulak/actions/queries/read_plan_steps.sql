SELECT step_order, channel_type, template, subject, body, delay_seconds, condition, timeout_seconds, retries, on_failure, on_uncertain, receipt_seconds
FROM action_plan_steps WHERE plan = :plan AND version = :version ORDER BY step_order
