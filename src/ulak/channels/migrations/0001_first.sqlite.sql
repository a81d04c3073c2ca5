CREATE TABLE channels_endpoint (url TEXT PRIMARY KEY, secrets TEXT NOT NULL, disabled_at INTEGER, reason TEXT,
  requires_secret INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
-- The installation's own signing key.
-- move: replace
CREATE TABLE channels_key (name TEXT PRIMARY KEY, secret TEXT NOT NULL) WITHOUT ROWID;
