CREATE TABLE recipient_profiles (
  id INTEGER PRIMARY KEY,
  device_id TEXT,
  name TEXT NOT NULL,
  status INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  time_zone TEXT,
  quiet_hours TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE INDEX recipient_profiles_device ON recipient_profiles (device_id, priority, id) WHERE device_id IS NOT NULL;

CREATE TABLE recipient_channels (
  id INTEGER PRIMARY KEY,
  profile_id INTEGER NOT NULL REFERENCES recipient_profiles (id),
  channel_type TEXT NOT NULL,
  target TEXT NOT NULL,
  target_meta TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  verify_status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE INDEX recipient_channels_profile ON recipient_channels (profile_id, channel_type, id);

-- `version` is the newest one. A plan that is deleted stays for the runs that have its steps.
CREATE TABLE action_plans (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  critical INTEGER NOT NULL,
  version INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  deleted_at INTEGER
);

CREATE TABLE action_plan_steps (
  plan INTEGER NOT NULL REFERENCES action_plans (id),
  version INTEGER NOT NULL,
  step_order INTEGER NOT NULL,
  channel_type TEXT NOT NULL,
  template TEXT,
  subject TEXT,
  body TEXT,
  delay_seconds REAL NOT NULL,
  condition TEXT,
  timeout_seconds REAL,
  retries INTEGER,
  on_failure TEXT NOT NULL,
  on_uncertain TEXT NOT NULL,
  receipt_seconds REAL,
  PRIMARY KEY (plan, version, step_order)
) WITHOUT ROWID;

CREATE TABLE action_routes (
  id INTEGER PRIMARY KEY,
  action_plan_id INTEGER NOT NULL REFERENCES action_plans (id),
  step_order INTEGER NOT NULL,
  recipient_profile_id INTEGER NOT NULL REFERENCES recipient_profiles (id),
  channel_type TEXT,
  enabled INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE INDEX action_routes_step ON action_routes (action_plan_id, step_order, id);
CREATE INDEX action_routes_profile ON action_routes (recipient_profile_id);

CREATE TABLE actions_run (
  id INTEGER PRIMARY KEY,
  evaluation_key TEXT NOT NULL UNIQUE,
  plan_id INTEGER NOT NULL,
  plan_version INTEGER NOT NULL,
  state TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  device_id TEXT,
  stream_id INTEGER,
  group_id INTEGER,
  rule_id INTEGER,
  language TEXT,
  critical INTEGER NOT NULL,
  variables TEXT NOT NULL,
  accepted_at INTEGER NOT NULL,
  ended_at INTEGER,
  ended_by TEXT,
  trace TEXT
);
CREATE INDEX actions_run_unfinished ON actions_run (id) WHERE ended_at IS NULL;

-- `job` is the step's newest job, `timer` the one that waits for a receipt, `tried` the channels that have failed,
-- `log` a line of JSON for every decision, `process_ms` how long the last attempt took.
CREATE TABLE actions_step (
  run INTEGER NOT NULL,
  step_order INTEGER NOT NULL,
  state TEXT NOT NULL,
  channel_type TEXT NOT NULL,
  job INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  route_id INTEGER,
  profile_id INTEGER,
  channel_id INTEGER,
  retry_count INTEGER NOT NULL,
  error_code TEXT,
  error_message TEXT,
  reason TEXT,
  provider_message_id TEXT,
  deferred_until INTEGER,
  tried TEXT NOT NULL,
  log TEXT NOT NULL,
  ended_at INTEGER,
  timer INTEGER,
  process_ms INTEGER NOT NULL,
  PRIMARY KEY (run, step_order)
) WITHOUT ROWID;
CREATE INDEX actions_step_profile ON actions_step (profile_id, run) WHERE profile_id IS NOT NULL;
CREATE INDEX actions_step_ended ON actions_step (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX actions_step_job ON actions_step (job) WHERE reason IS NOT NULL;
-- A webhook's answer is its receipt: nobody asks for it by name.
CREATE INDEX actions_step_provider ON actions_step (provider_message_id) WHERE provider_message_id IS NOT NULL AND channel_type <> 'webhook';
CREATE INDEX actions_step_deferred ON actions_step (channel_id, deferred_until, run, step_order) WHERE deferred_until IS NOT NULL;

-- Profiles that a step of a run was for before it went on to somebody else: forgetting a person looks here.
CREATE TABLE actions_former (
  profile_id INTEGER NOT NULL,
  run INTEGER NOT NULL,
  PRIMARY KEY (profile_id, run)
) WITHOUT ROWID;
CREATE INDEX actions_former_run ON actions_former (run);

-- Codes that were sent to prove a channel: only the digest is kept.
CREATE TABLE actions_verification (
  channel_id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL,
  wrong INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
);

-- When codes were sent to an address of the last hour, by the address's digest: no more than a few go there.
CREATE TABLE actions_code (
  address TEXT NOT NULL,
  sent_at INTEGER NOT NULL,
  PRIMARY KEY (address, sent_at)
) WITHOUT ROWID;
CREATE INDEX actions_code_sent ON actions_code (sent_at);

-- What each channel got in each hour: the brakes look here.
CREATE TABLE actions_sent (
  channel_id INTEGER NOT NULL,
  hour INTEGER NOT NULL,
  messages INTEGER NOT NULL,
  segments INTEGER NOT NULL,
  PRIMARY KEY (channel_id, hour)
) WITHOUT ROWID;
CREATE INDEX actions_sent_hour ON actions_sent (hour);

CREATE TABLE actions_counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
-- move: replace
CREATE TABLE actions_secret (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- What came from a bus and can't be read.
CREATE TABLE actions_unreadable (
  topic TEXT NOT NULL,
  part INTEGER NOT NULL,
  position INTEGER NOT NULL,
  body BLOB NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (topic, part, position)
) WITHOUT ROWID;
CREATE INDEX actions_unreadable_at ON actions_unreadable (at);
