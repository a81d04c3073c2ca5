CREATE TABLE notify_idempotency (key text PRIMARY KEY, hash text NOT NULL, job bigint NOT NULL, at bigint NOT NULL);
CREATE INDEX notify_idempotency_at ON notify_idempotency (at);
CREATE TABLE notify_inbox (
  id bigint PRIMARY KEY,
  recipient text NOT NULL,
  subject text,
  body text NOT NULL,
  metadata text NOT NULL,
  created_at bigint NOT NULL,
  delivered_at bigint NOT NULL,
  read_at bigint
);
CREATE INDEX notify_inbox_recipient ON notify_inbox (recipient, id);
CREATE INDEX notify_inbox_unread ON notify_inbox (recipient) WHERE read_at IS NULL;
CREATE TABLE notify_reference (reference text NOT NULL, job bigint NOT NULL, PRIMARY KEY (reference, job));
CREATE INDEX notify_reference_job ON notify_reference (job);
CREATE TABLE notify_attempt (
  id bigint PRIMARY KEY,
  url text NOT NULL,
  job bigint NOT NULL,
  number integer NOT NULL,
  at bigint NOT NULL,
  millis bigint NOT NULL,
  status integer,
  code text
);
CREATE INDEX notify_attempt_url ON notify_attempt (url, id);
CREATE INDEX notify_attempt_at ON notify_attempt (at);
