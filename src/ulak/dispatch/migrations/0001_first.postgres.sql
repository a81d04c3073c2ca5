-- `id` is ours, `helper` the caller's own. Places are whole numbers: billionths of a degree, and of the unit sphere.
CREATE TABLE dispatch_helper (
  id bigint PRIMARY KEY,
  helper text COLLATE "C" NOT NULL UNIQUE,
  name text,
  active bigint NOT NULL,
  doing bigint NOT NULL,  -- 0 nothing, 1 it is being asked, 2 it has a task
  latitude bigint,
  longitude bigint,
  x bigint,
  y bigint,
  z bigint,
  cell bigint,
  position_at bigint,
  skills text NOT NULL,
  language text,
  contact_type text NOT NULL,
  contact text NOT NULL,
  month bigint NOT NULL,  -- of which the next two are counts
  completed bigint NOT NULL,
  expired bigint NOT NULL,
  timeouts bigint NOT NULL,
  served_at bigint NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX dispatch_helper_cell ON dispatch_helper (cell) WHERE cell IS NOT NULL;
CREATE TABLE dispatch_task (
  id bigint PRIMARY KEY,
  requester text NOT NULL,
  category text NOT NULL,
  latitude bigint NOT NULL,
  longitude bigint NOT NULL,
  radius bigint NOT NULL,  -- millimetres
  deadline bigint NOT NULL,  -- milliseconds
  width bigint NOT NULL,
  created_at bigint NOT NULL,
  description text,
  skills text NOT NULL,
  language text,
  contact_type text NOT NULL,
  contact text NOT NULL,
  state text NOT NULL,
  helper bigint,
  helper_name text,
  searches bigint NOT NULL,
  max_searches bigint NOT NULL,
  searched_at bigint NOT NULL,
  place bigint NOT NULL,  -- of the first in its list who is still to be asked
  timer bigint NOT NULL,
  assigned_at bigint,
  ended_at bigint,
  reason text,
  once text,
  digest text,
  trace text
) WITH (fillfactor = 80);
-- The backstop: a helper has one running task, and one open offer.
CREATE UNIQUE INDEX dispatch_task_running ON dispatch_task (helper) WHERE state = 'ASSIGNED';
CREATE INDEX dispatch_task_state ON dispatch_task (state, id);
CREATE INDEX dispatch_task_ended ON dispatch_task (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX dispatch_task_helper ON dispatch_task (helper_name, id) WHERE helper_name IS NOT NULL;
CREATE INDEX dispatch_task_requester ON dispatch_task (requester, id);
CREATE UNIQUE INDEX dispatch_task_once ON dispatch_task (once) WHERE once IS NOT NULL;
-- One row per search: whom to ask, in order. Only the task's place in it moves.
CREATE TABLE dispatch_candidate (
  task bigint NOT NULL,
  search bigint NOT NULL,
  list bytea NOT NULL,
  PRIMARY KEY (task, search)
);
CREATE TABLE dispatch_offer (
  id bigint PRIMARY KEY,
  task bigint NOT NULL,
  helper bigint NOT NULL,
  state text NOT NULL,
  opened_at bigint NOT NULL,
  deadline_at bigint NOT NULL,
  distance bigint NOT NULL,  -- millimetres
  timer bigint NOT NULL,
  message bigint NOT NULL,
  ended_at bigint,
  released_at bigint,
  reason text
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX dispatch_offer_open ON dispatch_offer (helper) WHERE state = 'OPEN';
CREATE INDEX dispatch_offer_due ON dispatch_offer (deadline_at) WHERE state = 'OPEN';
CREATE INDEX dispatch_offer_task ON dispatch_offer (task);
-- Why a search found what it found: who was left out, and for which reason.
CREATE TABLE dispatch_decision (
  task bigint NOT NULL,
  search bigint NOT NULL,
  at bigint NOT NULL,
  radius bigint NOT NULL,
  found bigint NOT NULL,
  excluded bytea NOT NULL,
  counts text NOT NULL,
  PRIMARY KEY (task, search)
);
