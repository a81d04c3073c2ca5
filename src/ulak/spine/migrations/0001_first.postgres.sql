-- move: replace
CREATE TABLE meta (name text PRIMARY KEY, value text NOT NULL);

-- state: 0 ready, 1 deferred, 2 leased, 3 behind (its key has no free slot), 4 suspect (was running when a process died)
-- turn: its place among those that are ready or in line: the id at first, and a new one whenever it joins their end again
CREATE TABLE job (
  id bigint,
  kind text COLLATE "C" NOT NULL,
  key text COLLATE "C",
  slots integer NOT NULL,
  slot integer,
  prio smallint NOT NULL,
  due_at bigint NOT NULL,
  state smallint NOT NULL,
  turn bigint NOT NULL,
  attempt integer NOT NULL DEFAULT 0,
  crashes integer NOT NULL DEFAULT 0,
  epoch integer NOT NULL DEFAULT 0,
  owner bigint,
  accepted_at bigint NOT NULL,
  started_at bigint,
  expires_at bigint,
  cancelled_at bigint,
  unique_key text COLLATE "C",
  continuation text COLLATE "C",
  hold smallint NOT NULL,
  note text,
  trace text,
  payload bytea NOT NULL,
  -- Being claimed gives a row a second place in the index, so there is room for it: else the claim would split pages.
  PRIMARY KEY (id) WITH (fillfactor = 50)
) WITH (
  -- Every job is written twice and deleted once: leave room on the page, and vacuum early and without pauses.
  fillfactor = 85, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.1
);
CREATE INDEX job_ready ON job (kind, prio, turn) WHERE state = 0;
CREATE INDEX job_due ON job (due_at, id) WHERE state = 1;
CREATE INDEX job_owner ON job (owner, id) WHERE state = 2;
-- One slot is order, so priority does not count there; in a bulkhead the urgent go first.
CREATE INDEX job_behind ON job (key, (CASE WHEN slots > 1 THEN prio ELSE 0 END), turn) WHERE state = 3;
-- What is put off for a key: how much of it there is, and what a breaker's reset makes due.
CREATE INDEX job_put_off ON job (key, due_at) WHERE state = 1 AND key IS NOT NULL;
CREATE INDEX job_suspect ON job (crashes, turn) WHERE state = 4;
CREATE UNIQUE INDEX job_slot ON job (key, slot) WHERE slot IS NOT NULL;
CREATE UNIQUE INDEX job_unique ON job (kind, unique_key) WHERE unique_key IS NOT NULL;
CREATE INDEX job_expiry ON job (expires_at) WHERE expires_at IS NOT NULL;

-- outcome: done, cancelled, expired
CREATE TABLE past (
  id bigint PRIMARY KEY,
  kind text COLLATE "C" NOT NULL,
  outcome text COLLATE "C" NOT NULL,
  key text COLLATE "C",
  prio smallint NOT NULL,
  attempt integer NOT NULL,
  crashes integer NOT NULL,
  accepted_at bigint NOT NULL,
  due_at bigint NOT NULL,
  started_at bigint,
  settled_at bigint NOT NULL,
  expires_at bigint,
  unique_key text COLLATE "C",
  note text,
  detail text,
  trace text,
  payload bytea NOT NULL
);

CREATE TABLE dead (
  id bigint PRIMARY KEY,
  kind text COLLATE "C" NOT NULL,
  key text COLLATE "C",
  slots integer NOT NULL,
  prio smallint NOT NULL,
  attempt integer NOT NULL,
  crashes integer NOT NULL,
  epoch integer NOT NULL,
  accepted_at bigint NOT NULL,
  due_at bigint NOT NULL,
  started_at bigint,
  died_at bigint NOT NULL,
  expires_at bigint,
  unique_key text COLLATE "C",
  continuation text COLLATE "C",
  hold smallint NOT NULL,
  cause text NOT NULL,
  error_class text COLLATE "C" NOT NULL,
  code text COLLATE "C",
  note text,
  trace text,
  payload bytea NOT NULL
);
CREATE INDEX dead_kind ON dead (kind, id);

-- What each commit leaves: its token (by which a commit whose reply was lost is found), its events not yet numbered, and
-- what it adds to `tally` and `credit`. Appending is free of waiting; the elected relay folds it into the tables below.
-- The id is taken from a sequence just before the commit: what has seen a commit has a higher id than that commit.
CREATE TABLE event_outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  token bigint NOT NULL,
  owner bigint NOT NULL,
  node smallint NOT NULL,
  at bigint NOT NULL,
  count integer NOT NULL,
  body bytea NOT NULL,
  words text[] NOT NULL,
  kinds text[] NOT NULL,
  numbers bigint[] NOT NULL,
  credit_pools text[] NOT NULL,
  credits bigint[] NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX event_outbox_waiting ON event_outbox (id) WHERE count > 0;
ALTER TABLE event_outbox ALTER COLUMN body SET STORAGE EXTERNAL;

-- One block per commit, numbered without gaps in the order in which the relay saw the commits.
CREATE TABLE event_block (
  first bigint PRIMARY KEY,
  count integer NOT NULL,
  at bigint NOT NULL,
  token bigint NOT NULL,
  body bytea NOT NULL
);
CREATE INDEX event_block_token ON event_block (token);
ALTER TABLE event_block ALTER COLUMN body SET STORAGE EXTERNAL;

-- The row of an owner that was declared dead stays while its node rests; see register_owner and bury_owner.
CREATE TABLE owner (
  id bigint PRIMARY KEY,
  node smallint NOT NULL UNIQUE,
  label text NOT NULL,
  started_at bigint NOT NULL,
  lease_at bigint NOT NULL,
  dead_at bigint
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- How often each word was spoken of each kind, by node: the ledger that conservation is checked against.
CREATE TABLE tally (
  word text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  node smallint NOT NULL,
  number bigint NOT NULL,
  PRIMARY KEY (word, kind, node)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- The bound of a pool (a kind's active jobs, or all of it that live) = what is free here + what owners hold (`credit` and what
-- `event_outbox` adds to it, less than nothing after owed work) + the jobs.
CREATE TABLE capacity (
  pool text COLLATE "C" PRIMARY KEY,
  bound bigint NOT NULL,
  free bigint NOT NULL,
  granted bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
CREATE TABLE credit (
  pool text COLLATE "C" NOT NULL,
  owner bigint NOT NULL,
  held bigint NOT NULL,
  PRIMARY KEY (pool, owner)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- `expression` and `time_zone` are what the entry said when it was opened.
-- move: replace
CREATE TABLE cron (name text PRIMARY KEY, fired_at bigint NOT NULL, expression text, time_zone text);
-- move: replace
CREATE TABLE budget (kind text PRIMARY KEY, tokens double precision NOT NULL, filled_at bigint NOT NULL)
  WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
-- move: replace
CREATE TABLE breaker (
  destination text PRIMARY KEY,
  state text NOT NULL,
  failures integer NOT NULL,
  changed_at bigint NOT NULL,
  until_at bigint NOT NULL
);

-- Named readers of the event log. The pruner stops at the slowest of them, up to a bound.
-- move: replace
CREATE TABLE event_follower (
  name text COLLATE "C" PRIMARY KEY,
  position bigint NOT NULL,
  advanced_at bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- Each line's hash covers the line before it, so that a change or a gap in the middle shows. Lines are only ever added.
CREATE TABLE audit (
  seq bigint PRIMARY KEY,
  at bigint NOT NULL,
  who text NOT NULL,
  verb text NOT NULL,
  object text NOT NULL,
  detail text NOT NULL,
  hash text NOT NULL
);
CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the audit log is only added to' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER audit_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();

-- What a person has decided about a kind while it is served; NULL where the handler's own number holds.
-- move: replace
CREATE TABLE kind_control (
  kind text COLLATE "C" PRIMARY KEY,
  paused smallint NOT NULL,
  concurrency bigint,
  changed_at bigint NOT NULL
);
