INSERT INTO actions_run (id, evaluation_key, plan_id, plan_version, state, trace_id, device_id, stream_id, group_id, rule_id, language, critical, variables, accepted_at, ended_at, ended_by, trace)
SELECT * FROM unnest(
  :id::bigint[], :evaluation_key::text[], :plan_id::bigint[], :plan_version::bigint[], :state::text[], :trace_id::text[], :device_id::text[], :stream_id::bigint[], :group_id::bigint[], :rule_id::bigint[], :language::text[], :critical::bigint[], :variables::text[], :accepted_at::bigint[], :ended_at::bigint[], :ended_by::text[], :trace::text[]
)
