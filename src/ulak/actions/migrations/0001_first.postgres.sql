CREATE TABLE recipient_profiles (
  id bigint PRIMARY KEY,
  device_id varchar(21),
  name varchar(100) NOT NULL,
  status boolean NOT NULL,
  priority bigint NOT NULL,
  time_zone text,
  quiet_hours text,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL
);
CREATE INDEX recipient_profiles_device ON recipient_profiles (device_id, priority, id) WHERE device_id IS NOT NULL;

CREATE TABLE recipient_channels (
  id bigint PRIMARY KEY,
  profile_id bigint NOT NULL REFERENCES recipient_profiles (id),
  channel_type varchar(32) NOT NULL,
  target text NOT NULL,
  target_meta text NOT NULL,
  enabled boolean NOT NULL,
  verify_status varchar(16) NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL
);
CREATE INDEX recipient_channels_profile ON recipient_channels (profile_id, channel_type, id);

-- `version` is the newest one. A plan that is deleted stays for the runs that have its steps.
CREATE TABLE action_plans (
  id bigint PRIMARY KEY,
  name varchar(100) NOT NULL,
  critical boolean NOT NULL,
  version bigint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  deleted_at bigint
);

CREATE TABLE action_plan_steps (
  plan bigint NOT NULL REFERENCES action_plans (id),
  version bigint NOT NULL,
  step_order bigint NOT NULL,
  channel_type varchar(32) NOT NULL,
  template text,
  subject text,
  body text,
  delay_seconds double precision NOT NULL,
  condition text,
  timeout_seconds double precision,
  retries bigint,
  on_failure text NOT NULL,
  on_uncertain text NOT NULL,
  receipt_seconds double precision,
  PRIMARY KEY (plan, version, step_order)
);

CREATE TABLE action_routes (
  id bigint PRIMARY KEY,
  action_plan_id bigint NOT NULL REFERENCES action_plans (id),
  step_order bigint NOT NULL,
  recipient_profile_id bigint NOT NULL REFERENCES recipient_profiles (id),
  channel_type varchar(32),
  enabled boolean NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL
);
CREATE INDEX action_routes_step ON action_routes (action_plan_id, step_order, id);
CREATE INDEX action_routes_profile ON action_routes (recipient_profile_id);

CREATE TABLE actions_run (
  id bigint PRIMARY KEY,
  evaluation_key text NOT NULL UNIQUE,
  plan_id bigint NOT NULL,
  plan_version bigint NOT NULL,
  state text NOT NULL,
  trace_id text NOT NULL,
  device_id text,
  stream_id bigint,
  group_id bigint,
  rule_id bigint,
  language text,
  critical bigint NOT NULL,
  variables text NOT NULL,
  accepted_at bigint NOT NULL,
  ended_at bigint,
  ended_by text,
  trace text
);
CREATE INDEX actions_run_unfinished ON actions_run (id) WHERE ended_at IS NULL;

-- `job` is the step's newest job, `timer` the one that waits for a receipt, `tried` the channels that have failed,
-- `log` a line of JSON for every decision, `process_ms` how long the last attempt took.
CREATE TABLE actions_step (
  run bigint NOT NULL,
  step_order bigint NOT NULL,
  state text NOT NULL,
  channel_type text NOT NULL,
  job bigint NOT NULL,
  due_at bigint NOT NULL,
  route_id bigint,
  profile_id bigint,
  channel_id bigint,
  retry_count bigint NOT NULL,
  error_code text,
  error_message text,
  reason text,
  provider_message_id text,
  deferred_until bigint,
  tried text NOT NULL,
  log text NOT NULL,
  ended_at bigint,
  timer bigint,
  process_ms bigint NOT NULL,
  PRIMARY KEY (run, step_order)
);
CREATE INDEX actions_step_profile ON actions_step (profile_id, run) WHERE profile_id IS NOT NULL;
CREATE INDEX actions_step_ended ON actions_step (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX actions_step_job ON actions_step (job) WHERE reason IS NOT NULL;
-- A webhook's answer is its receipt: nobody asks for it by name.
CREATE INDEX actions_step_provider ON actions_step (provider_message_id) WHERE provider_message_id IS NOT NULL AND channel_type <> 'webhook';
CREATE INDEX actions_step_deferred ON actions_step (channel_id, deferred_until, run, step_order) WHERE deferred_until IS NOT NULL;

-- Profiles that a step of a run was for before it went on to somebody else: forgetting a person looks here.
CREATE TABLE actions_former (
  profile_id bigint NOT NULL,
  run bigint NOT NULL,
  PRIMARY KEY (profile_id, run)
);
CREATE INDEX actions_former_run ON actions_former (run);

-- Codes that were sent to prove a channel: only the digest is kept.
CREATE TABLE actions_verification (
  channel_id bigint PRIMARY KEY,
  digest text NOT NULL,
  wrong bigint NOT NULL,
  expires_at bigint NOT NULL
);

-- When codes were sent to an address of the last hour, by the address's digest: no more than a few go there.
CREATE TABLE actions_code (
  address text NOT NULL,
  sent_at bigint NOT NULL,
  PRIMARY KEY (address, sent_at)
);
CREATE INDEX actions_code_sent ON actions_code (sent_at);

-- What each channel got in each hour: the brakes look here.
CREATE TABLE actions_sent (
  channel_id bigint NOT NULL,
  hour bigint NOT NULL,
  messages bigint NOT NULL,
  segments bigint NOT NULL,
  PRIMARY KEY (channel_id, hour)
);
-- With the channel: whichever index a plan takes, it goes over no other channel of the hour.
CREATE INDEX actions_sent_hour ON actions_sent (hour, channel_id);

CREATE TABLE actions_counter (name text PRIMARY KEY, value bigint NOT NULL);
-- move: replace
CREATE TABLE actions_secret (name text PRIMARY KEY, value text NOT NULL);

-- What came from a bus and can't be read.
CREATE TABLE actions_unreadable (
  topic text NOT NULL,
  part bigint NOT NULL,
  position bigint NOT NULL,
  body bytea NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (topic, part, position)
);
CREATE INDEX actions_unreadable_at ON actions_unreadable (at);
