-- move: replace
CREATE TABLE changes_registry (
    name text NOT NULL PRIMARY KEY,
    lease_owner bigint,
    lease_epoch bigint NOT NULL DEFAULT 0,
    accepted text NOT NULL DEFAULT '{}',
    seen_at bigint,
    published_at bigint
);

-- move: replace
CREATE TABLE changes_feed (
    name text NOT NULL PRIMARY KEY,
    registry text NOT NULL,
    epoch text NOT NULL,
    head_pos bigint NOT NULL DEFAULT 0,
    floor_pos bigint NOT NULL DEFAULT 0,
    floor_stamp bigint,
    stamp bigint,
    head_stamp bigint,
    count bigint NOT NULL DEFAULT 0,
    aliases text NOT NULL DEFAULT '{}',
    buckets bytea NOT NULL,
    state_hash text NOT NULL,
    fan_pos bigint NOT NULL DEFAULT 0,
    pruned_pos bigint NOT NULL DEFAULT 0
);

-- The log is the state: rows are added above the head and become visible when the head moves.
CREATE TABLE changes_version (
    feed text NOT NULL,
    pos bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    sync bigint NOT NULL,
    change smallint NOT NULL,
    hash bytea NOT NULL,
    content_hash text,
    parts text,
    body text,
    PRIMARY KEY (feed, pos)
);
CREATE INDEX changes_version_key ON changes_version (feed, key, pos);

CREATE TABLE changes_publication (
    feed text NOT NULL,
    stamp bigint NOT NULL,
    head_pos bigint NOT NULL,
    sync bigint NOT NULL,
    cause text NOT NULL,
    PRIMARY KEY (feed, stamp)
);
CREATE INDEX changes_publication_pos ON changes_publication (feed, head_pos);

CREATE TABLE changes_sync (
    id bigint NOT NULL PRIMARY KEY,
    registry text NOT NULL,
    status text NOT NULL,
    verdict text,
    error text,
    started_at bigint NOT NULL,
    ended_at bigint,
    digest text,
    feeds text NOT NULL DEFAULT '{}',
    preview text,
    held bigint NOT NULL DEFAULT 0
);
CREATE INDEX changes_sync_registry ON changes_sync (registry, id);

CREATE TABLE changes_title (
    feed text NOT NULL,
    pos bigint NOT NULL,
    title text NOT NULL,
    PRIMARY KEY (feed, pos)
);

CREATE TABLE changes_archive (
    feed text NOT NULL,
    pos bigint NOT NULL,
    name text NOT NULL,
    stamp bigint NOT NULL,
    count bigint NOT NULL,
    state_hash text NOT NULL,
    bytes bigint NOT NULL,
    digest text NOT NULL,
    made_at bigint NOT NULL,
    PRIMARY KEY (feed, pos)
);

CREATE TABLE changes_watch (
    id bigint NOT NULL PRIMARY KEY,
    feed text NOT NULL,
    keys text NOT NULL,
    fields text NOT NULL,
    webhook text,
    kind text,
    secret text,
    made_at bigint NOT NULL
);
CREATE INDEX changes_watch_feed ON changes_watch (feed, id);

-- The seed's own names, and its members of aliases_json; to read only.
CREATE VIEW sync_metadata AS
SELECT s.registry, s.id AS sync_id, s.status, s.verdict, s.error,
       to_timestamp(s.started_at / 1000.0) AT TIME ZONE 'Europe/Istanbul' AS started_at,
       to_timestamp(s.ended_at / 1000.0) AT TIME ZONE 'Europe/Istanbul' AS last_sync_at
FROM changes_sync s OFFSET 0; -- a view of one table could be written through without it

CREATE VIEW gib_user_changelog AS
SELECT md5(v.feed || ':' || f.epoch || ':' || v.pos)::uuid AS id,
       (CASE v.feed WHEN 'einvoice' THEN 1 ELSE 2 END)::smallint AS document_type,
       substr(v.key, 3) AS identifier,
       v.change AS change_type,
       to_timestamp(p.stamp) AT TIME ZONE 'Europe/Istanbul' AS changed_at,
       v.body::jsonb ->> 'title' AS title,
       v.body::jsonb ->> 'accountType' AS account_type,
       v.body::jsonb ->> 'type' AS type,
       (v.body::jsonb ->> 'firstCreationTime')::timestamp AS first_creation_time,
       (SELECT jsonb_agg(jsonb_build_object('Alias', a ->> 'alias', 'Type', a ->> 'type',
                                            'CreationTime', a ->> 'creationTime') ORDER BY n)
        FROM jsonb_array_elements(v.body::jsonb -> 'aliases') WITH ORDINALITY AS one (a, n)) AS aliases_json
FROM changes_feed f
JOIN changes_version v ON v.feed = f.name AND v.pos > f.floor_pos AND v.pos <= f.head_pos
CROSS JOIN LATERAL (
    SELECT p.stamp FROM changes_publication p
    WHERE p.feed = v.feed AND p.head_pos >= v.pos ORDER BY p.head_pos LIMIT 1
) p
WHERE f.name IN ('einvoice', 'edespatch');

CREATE VIEW changes_gib_user AS
SELECT v.feed,
       substr(v.key, 3) AS identifier,
       v.body::jsonb ->> 'accountType' AS account_type,
       (v.body::jsonb ->> 'firstCreationTime')::timestamp AS first_creation_time,
       v.body::jsonb ->> 'title' AS title,
       t.title AS title_lower,
       v.body::jsonb ->> 'type' AS type,
       (SELECT jsonb_agg(jsonb_build_object('Alias', a ->> 'alias', 'Type', a ->> 'type',
                                            'CreationTime', a ->> 'creationTime') ORDER BY n)
        FROM jsonb_array_elements(v.body::jsonb -> 'aliases') WITH ORDINALITY AS one (a, n)) AS aliases_json,
       v.content_hash
FROM changes_feed f
JOIN changes_version v ON v.feed = f.name AND v.pos <= f.head_pos AND v.change <> 3
LEFT JOIN changes_title t ON t.feed = v.feed AND t.pos = v.pos
WHERE NOT EXISTS (
    SELECT 1 FROM changes_version n
    WHERE n.feed = v.feed AND n.key = v.key AND n.pos > v.pos AND n.pos <= f.head_pos
);

CREATE VIEW e_invoice_gib_users AS
SELECT identifier, account_type, first_creation_time, title, title_lower, type, aliases_json, content_hash
FROM changes_gib_user WHERE feed = 'einvoice';

CREATE VIEW e_despatch_gib_users AS
SELECT identifier, account_type, first_creation_time, title, title_lower, type, aliases_json, content_hash
FROM changes_gib_user WHERE feed = 'edespatch';
