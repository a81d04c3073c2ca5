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
CREATE TABLE notify_endpoint (url TEXT PRIMARY KEY, secrets TEXT NOT NULL, disabled_at INTEGER, reason TEXT) WITHOUT ROWID;
