INSERT INTO action_plan_steps (plan, version, step_order, channel_type, template, subject, body, delay_seconds, condition, timeout_seconds, retries, on_failure, on_uncertain, receipt_seconds)
VALUES (:plan, :version, :step_order, :channel_type, :template, :subject, :body, :delay_seconds, :condition, :timeout_seconds, :retries, :on_failure, :on_uncertain, :receipt_seconds)
