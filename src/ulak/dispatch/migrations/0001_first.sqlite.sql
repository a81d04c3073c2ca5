-- `id` is ours, `helper` the caller's own. Places are whole numbers: billionths of a degree, and of the unit sphere.
CREATE TABLE dispatch_helper (
  id INTEGER PRIMARY KEY,
  helper TEXT NOT NULL UNIQUE,
  name TEXT,
  active INTEGER NOT NULL,
  doing INTEGER NOT NULL,  -- 0 nothing, 1 it is being asked, 2 it has a task
  latitude INTEGER,
  longitude INTEGER,
  x INTEGER,
  y INTEGER,
  z INTEGER,
  cell INTEGER,
  position_at INTEGER,
  skills TEXT NOT NULL,
  language TEXT,
  contact_type TEXT NOT NULL,
  contact TEXT NOT NULL,
  month INTEGER NOT NULL,  -- of which the next two are counts
  completed INTEGER NOT NULL,
  expired INTEGER NOT NULL,
  timeouts INTEGER NOT NULL,
  served_at INTEGER NOT NULL
);
-- It covers the search: a circle is answered from the index alone.
CREATE INDEX dispatch_helper_cell ON dispatch_helper (
  cell, x, y, z, active, doing, position_at, timeouts, month, completed, expired, skills, helper
) WHERE cell IS NOT NULL;
CREATE TABLE dispatch_task (
  id INTEGER PRIMARY KEY,
  requester TEXT NOT NULL,
  category TEXT NOT NULL,
  latitude INTEGER NOT NULL,
  longitude INTEGER NOT NULL,
  radius INTEGER NOT NULL,  -- millimetres
  deadline INTEGER NOT NULL,  -- milliseconds
  width INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  description TEXT,
  skills TEXT NOT NULL,
  language TEXT,
  contact_type TEXT NOT NULL,
  contact TEXT NOT NULL,
  state TEXT NOT NULL,
  helper INTEGER,
  helper_name TEXT,
  searches INTEGER NOT NULL,
  max_searches INTEGER NOT NULL,
  searched_at INTEGER NOT NULL,
  place INTEGER NOT NULL,  -- of the first in its list who is still to be asked
  timer INTEGER NOT NULL,
  assigned_at INTEGER,
  ended_at INTEGER,
  reason TEXT,
  once TEXT,
  digest TEXT,
  trace TEXT
);
-- The backstop: a helper has one running task, and one open offer.
CREATE UNIQUE INDEX dispatch_task_running ON dispatch_task (helper) WHERE state = 'ASSIGNED';
CREATE INDEX dispatch_task_state ON dispatch_task (state, id);
CREATE INDEX dispatch_task_ended ON dispatch_task (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX dispatch_task_helper ON dispatch_task (helper_name, id) WHERE helper_name IS NOT NULL;
CREATE INDEX dispatch_task_requester ON dispatch_task (requester, id);
CREATE UNIQUE INDEX dispatch_task_once ON dispatch_task (once) WHERE once IS NOT NULL;
-- One row per search: whom to ask, in order. Only the task's place in it moves.
CREATE TABLE dispatch_candidate (
  task INTEGER NOT NULL,
  search INTEGER NOT NULL,
  list BLOB NOT NULL,
  PRIMARY KEY (task, search)
) WITHOUT ROWID;
CREATE TABLE dispatch_offer (
  id INTEGER PRIMARY KEY,
  task INTEGER NOT NULL,
  helper INTEGER NOT NULL,
  state TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  deadline_at INTEGER NOT NULL,
  distance INTEGER NOT NULL,  -- millimetres
  timer INTEGER NOT NULL,
  message INTEGER NOT NULL,
  ended_at INTEGER,
  released_at INTEGER,
  reason TEXT
);
CREATE UNIQUE INDEX dispatch_offer_open ON dispatch_offer (helper) WHERE state = 'OPEN';
CREATE INDEX dispatch_offer_due ON dispatch_offer (deadline_at) WHERE state = 'OPEN';
CREATE INDEX dispatch_offer_task ON dispatch_offer (task);
-- Why a search found what it found: who was left out, and for which reason.
CREATE TABLE dispatch_decision (
  task INTEGER NOT NULL,
  search INTEGER NOT NULL,
  at INTEGER NOT NULL,
  radius INTEGER NOT NULL,
  found INTEGER NOT NULL,
  excluded BLOB NOT NULL,
  counts TEXT NOT NULL,
  PRIMARY KEY (task, search)
) WITHOUT ROWID;
