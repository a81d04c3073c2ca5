SELECT
  coalesce((SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = to_regclass('job')), 0)::float8,
  coalesce((SELECT max(age(backend_xmin)) FROM pg_stat_activity WHERE datname = current_database()), 0)::float8,
  (SELECT count(*) FROM event_outbox WHERE count > 0)::float8,
  (SELECT count(*) FROM owner WHERE dead_at IS NULL)::float8
