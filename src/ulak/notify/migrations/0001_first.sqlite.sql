CREATE TABLE notify_idempotency (key TEXT PRIMARY KEY, hash TEXT NOT NULL, job INTEGER NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX notify_idempotency_at ON notify_idempotency (at);
CREATE TABLE notify_inbox (
  id INTEGER PRIMARY KEY,
  recipient TEXT NOT NULL,
  subject TEXT,
  body TEXT NOT NULL,
  metadata TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  delivered_at INTEGER NOT NULL,
  read_at INTEGER
);
CREATE INDEX notify_inbox_recipient ON notify_inbox (recipient, id);
CREATE INDEX notify_inbox_unread ON notify_inbox (recipient) WHERE read_at IS NULL;
CREATE TABLE notify_reference (reference TEXT NOT NULL, job INTEGER NOT NULL, PRIMARY KEY (reference, job)) WITHOUT ROWID;
CREATE INDEX notify_reference_job ON notify_reference (job);
CREATE TABLE notify_attempt (
  id INTEGER PRIMARY KEY,
  url TEXT NOT NULL,
  job INTEGER NOT NULL,
  number INTEGER NOT NULL,
  at INTEGER NOT NULL,
  millis INTEGER NOT NULL,
  status INTEGER,
  code TEXT
);
CREATE INDEX notify_attempt_url ON notify_attempt (url, id);
CREATE INDEX notify_attempt_at ON notify_attempt (at);
