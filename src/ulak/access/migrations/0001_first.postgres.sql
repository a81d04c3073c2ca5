-- `digest` is the SHA-256 of a 256-bit random secret; the secret itself is shown once and never kept.
CREATE TABLE access_key (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  digest text NOT NULL,
  scopes text NOT NULL,
  made_at bigint NOT NULL,
  revoked_at bigint
);
CREATE TABLE access_secret (name text PRIMARY KEY, value text NOT NULL);
