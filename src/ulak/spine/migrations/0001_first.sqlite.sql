-- move: replace
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- state: 0 ready, 1 deferred, 2 leased, 3 behind (its key has no free slot), 4 suspect (was running when a process died)
-- turn: its place among those that are ready or in line: the id at first, and a new one whenever it joins their end again
CREATE TABLE job (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  key TEXT,
  slots INTEGER NOT NULL,
  slot INTEGER,
  prio INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  state INTEGER NOT NULL,
  turn INTEGER NOT NULL,
  attempt INTEGER NOT NULL DEFAULT 0,
  crashes INTEGER NOT NULL DEFAULT 0,
  epoch INTEGER NOT NULL DEFAULT 0,
  owner INTEGER,
  accepted_at INTEGER NOT NULL,
  started_at INTEGER,
  expires_at INTEGER,
  cancelled_at INTEGER,
  unique_key TEXT,
  continuation TEXT,
  hold INTEGER NOT NULL,
  note TEXT,
  trace TEXT,
  payload BLOB NOT NULL
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
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  outcome TEXT NOT NULL,
  key TEXT,
  prio INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  accepted_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  started_at INTEGER,
  settled_at INTEGER NOT NULL,
  expires_at INTEGER,
  unique_key TEXT,
  note TEXT,
  detail TEXT,
  trace TEXT,
  payload BLOB NOT NULL
);

CREATE TABLE dead (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  key TEXT,
  slots INTEGER NOT NULL,
  prio INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  accepted_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  started_at INTEGER,
  died_at INTEGER NOT NULL,
  expires_at INTEGER,
  unique_key TEXT,
  continuation TEXT,
  hold INTEGER NOT NULL,
  cause TEXT NOT NULL,
  error_class TEXT NOT NULL,
  code TEXT,
  note TEXT,
  trace TEXT,
  payload BLOB NOT NULL
);
CREATE INDEX dead_kind ON dead (kind, id);

-- One block per commit. The first sequence number is the key; `token` tells a commit whose reply was lost.
CREATE TABLE event_block (
  first INTEGER PRIMARY KEY,
  count INTEGER NOT NULL,
  at INTEGER NOT NULL,
  token INTEGER NOT NULL,
  body BLOB NOT NULL
);

CREATE TABLE owner (
  id INTEGER PRIMARY KEY,
  node INTEGER NOT NULL UNIQUE,
  label TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  lease_at INTEGER NOT NULL,
  dead_at INTEGER
);

-- How often each word was spoken of each kind, by node: the ledger that conservation is checked against.
CREATE TABLE tally (
  word TEXT NOT NULL,
  kind TEXT NOT NULL,
  node INTEGER NOT NULL,
  number INTEGER NOT NULL,
  PRIMARY KEY (word, kind, node)
) WITHOUT ROWID;

-- `expression` and `time_zone` are what the entry said when it was opened.
-- move: replace
CREATE TABLE cron (name TEXT PRIMARY KEY, fired_at INTEGER NOT NULL, expression TEXT, time_zone TEXT) WITHOUT ROWID;
-- move: replace
CREATE TABLE budget (kind TEXT PRIMARY KEY, tokens REAL NOT NULL, filled_at INTEGER NOT NULL) WITHOUT ROWID;
-- move: replace
CREATE TABLE breaker (
  destination TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  failures INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  until_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Named readers of the event log. The pruner stops at the slowest of them, up to a bound.
-- move: replace
CREATE TABLE event_follower (
  name TEXT PRIMARY KEY,
  position INTEGER NOT NULL,
  advanced_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Each line's hash covers the line before it, so that a change or a gap in the middle shows. Lines are only ever added.
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  who TEXT NOT NULL,
  verb TEXT NOT NULL,
  object TEXT NOT NULL,
  detail TEXT NOT NULL,
  hash TEXT NOT NULL
);
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;

-- What a person has decided about a kind while it is served; NULL where the handler's own number holds.
-- move: replace
CREATE TABLE kind_control (
  kind TEXT PRIMARY KEY,
  paused INTEGER NOT NULL,
  concurrency INTEGER,
  changed_at INTEGER NOT NULL
) WITHOUT ROWID;
