CREATE TABLE channels_endpoint (url text PRIMARY KEY, secrets text NOT NULL, disabled_at bigint, reason text,
  requires_secret integer NOT NULL DEFAULT 0);
-- The installation's own signing key.
-- move: replace
CREATE TABLE channels_key (name text PRIMARY KEY, secret text NOT NULL);
