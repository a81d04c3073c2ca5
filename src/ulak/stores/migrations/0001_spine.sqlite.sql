CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- state: 0 ready, 1 deferred, 2 leased, 3 behind (its key has no free slot), 4 suspect (was running when a process died)
CREATE TABLE job (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  key TEXT,
  slots INTEGER NOT NULL,
  slot INTEGER,
  prio INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  state INTEGER NOT NULL,
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
  payload BLOB NOT NULL
);
CREATE INDEX job_ready ON job (kind, prio, id) WHERE state = 0;
CREATE INDEX job_due ON job (due_at, id) WHERE state = 1;
CREATE INDEX job_owner ON job (owner, id) WHERE state = 2;
-- One slot is order, so priority does not count there; in a bulkhead the urgent go first.
CREATE INDEX job_behind ON job (key, (CASE WHEN slots > 1 THEN prio ELSE 0 END), id) WHERE state = 3;
CREATE INDEX job_suspect ON job (crashes, id) WHERE state = 4;
CREATE UNIQUE INDEX job_slot ON job (key, slot) WHERE slot IS NOT NULL;
CREATE UNIQUE INDEX job_unique ON job (kind, unique_key) WHERE unique_key IS NOT NULL;

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
  note TEXT,
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

CREATE TABLE cron (name TEXT PRIMARY KEY, fired_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE budget (kind TEXT PRIMARY KEY, tokens REAL NOT NULL, filled_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE breaker (
  destination TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  failures INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  until_at INTEGER NOT NULL
) WITHOUT ROWID;
