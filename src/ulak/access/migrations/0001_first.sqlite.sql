-- `digest` is the SHA-256 of a 256-bit random secret; the secret itself is shown once and never kept.
CREATE TABLE access_key (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  digest TEXT NOT NULL,
  scopes TEXT NOT NULL,
  made_at INTEGER NOT NULL,
  revoked_at INTEGER
) WITHOUT ROWID;
CREATE TABLE access_secret (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
