-- move: replace
CREATE TABLE changes_registry (
    name TEXT NOT NULL PRIMARY KEY,
    lease_owner INTEGER,
    lease_epoch INTEGER NOT NULL DEFAULT 0,
    accepted TEXT NOT NULL DEFAULT '{}',
    seen_at INTEGER,
    published_at INTEGER
) WITHOUT ROWID;

-- move: replace
CREATE TABLE changes_feed (
    name TEXT NOT NULL PRIMARY KEY,
    registry TEXT NOT NULL,
    epoch TEXT NOT NULL,
    head_pos INTEGER NOT NULL DEFAULT 0,
    floor_pos INTEGER NOT NULL DEFAULT 0,
    floor_stamp INTEGER,
    stamp INTEGER,
    head_stamp INTEGER,
    count INTEGER NOT NULL DEFAULT 0,
    aliases TEXT NOT NULL DEFAULT '{}',
    buckets BLOB NOT NULL,
    state_hash TEXT NOT NULL,
    fan_pos INTEGER NOT NULL DEFAULT 0,
    pruned_pos INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- The log is the state: rows are added above the head and become visible when the head moves.
CREATE TABLE changes_version (
    feed TEXT NOT NULL,
    pos INTEGER NOT NULL,
    key TEXT NOT NULL,
    sync INTEGER NOT NULL,
    change INTEGER NOT NULL,
    hash BLOB NOT NULL,
    content_hash TEXT,
    parts TEXT,
    body TEXT,
    PRIMARY KEY (feed, pos)
) WITHOUT ROWID;
CREATE INDEX changes_version_key ON changes_version (feed, key, pos);

CREATE TABLE changes_publication (
    feed TEXT NOT NULL,
    stamp INTEGER NOT NULL,
    head_pos INTEGER NOT NULL,
    sync INTEGER NOT NULL,
    cause TEXT NOT NULL,
    PRIMARY KEY (feed, stamp)
) WITHOUT ROWID;
CREATE INDEX changes_publication_pos ON changes_publication (feed, head_pos);

CREATE TABLE changes_sync (
    id INTEGER NOT NULL PRIMARY KEY,
    registry TEXT NOT NULL,
    status TEXT NOT NULL,
    verdict TEXT,
    error TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    digest TEXT,
    feeds TEXT NOT NULL DEFAULT '{}',
    preview TEXT,
    held INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX changes_sync_registry ON changes_sync (registry, id);

CREATE TABLE changes_title (
    feed TEXT NOT NULL,
    pos INTEGER NOT NULL,
    title TEXT NOT NULL,
    PRIMARY KEY (feed, pos)
) WITHOUT ROWID;

CREATE TABLE changes_archive (
    feed TEXT NOT NULL,
    pos INTEGER NOT NULL,
    name TEXT NOT NULL,
    stamp INTEGER NOT NULL,
    count INTEGER NOT NULL,
    state_hash TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    digest TEXT NOT NULL,
    made_at INTEGER NOT NULL,
    PRIMARY KEY (feed, pos)
) WITHOUT ROWID;

CREATE TABLE changes_watch (
    id INTEGER NOT NULL PRIMARY KEY,
    feed TEXT NOT NULL,
    keys TEXT NOT NULL,
    fields TEXT NOT NULL,
    webhook TEXT,
    kind TEXT,
    secret TEXT,
    made_at INTEGER NOT NULL
);
CREATE INDEX changes_watch_feed ON changes_watch (feed, id);
