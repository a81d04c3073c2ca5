"""The seed's pipeline as its document tells it: COPY, one SQL merge, diff, changelog, a refreshed view.

Parsing is this process's, everything else the database's. CPU seconds are of both.
"""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import psycopg

from ulak.changes import turkish

_COLUMNS = "identifier text, account_type text, first_creation_time timestamp, title text, title_lower text, type text"
_TABLES = f"""
CREATE UNLOGGED TABLE IF NOT EXISTS seed_temp_pk ({_COLUMNS}, documents jsonb);
CREATE UNLOGGED TABLE IF NOT EXISTS seed_temp_gb ({_COLUMNS}, documents jsonb);
CREATE TABLE IF NOT EXISTS seed_changelog (id uuid PRIMARY KEY, document_type smallint, identifier text,
    change_type smallint, changed_at timestamp, title text, account_type text, type text,
    first_creation_time timestamp, aliases_json jsonb);
CREATE INDEX IF NOT EXISTS seed_changelog_at ON seed_changelog (document_type, changed_at);
"""
_MAIN = """
CREATE TABLE IF NOT EXISTS seed_{feed} (identifier text PRIMARY KEY, account_type text, first_creation_time timestamp,
    title text, title_lower text, type text, aliases_json jsonb, content_hash text);
CREATE MATERIALIZED VIEW IF NOT EXISTS seed_mv_{feed} AS SELECT * FROM seed_{feed};
CREATE UNIQUE INDEX IF NOT EXISTS seed_mv_{feed}_key ON seed_mv_{feed} (identifier);
"""
_NEW = """
CREATE TEMP TABLE _new_data ON COMMIT DROP AS
WITH docs AS (
    SELECT t.*, d.value AS doc FROM seed_temp_pk t CROSS JOIN LATERAL jsonb_array_elements(t.documents) d
    WHERE d.value ->> 'Type' = '{document}'
    UNION ALL
    SELECT t.*, d.value AS doc FROM seed_temp_gb t CROSS JOIN LATERAL jsonb_array_elements(t.documents) d
    WHERE d.value ->> 'Type' = '{document}'
), flat AS (
    SELECT docs.*, a.value AS al FROM docs CROSS JOIN LATERAL jsonb_array_elements(docs.doc -> 'Aliases') a
), aggregated AS (
    SELECT identifier, MAX(account_type) AS account_type, MAX(first_creation_time) AS first_creation_time,
           MAX(title) AS title, MAX(title_lower) AS title_lower, MAX(type) AS type,
           jsonb_agg(al ORDER BY al ->> 'Alias', al ->> 'Type') AS aliases_json,
           string_agg((al ->> 'Alias') || ':' || (al ->> 'Type'), ','
                      ORDER BY al ->> 'Alias', al ->> 'Type') AS alias_signature
    FROM flat GROUP BY identifier
)
SELECT identifier, account_type, first_creation_time, title, title_lower, type, aliases_json,
       md5(identifier || COALESCE(title_lower, '') || COALESCE(account_type, '') || COALESCE(type, '') ||
           first_creation_time::text || COALESCE(alias_signature, '')) AS content_hash
FROM aggregated
"""
_DIFF = (
    (
        "CREATE TEMP TABLE _added ON COMMIT DROP AS SELECT n.identifier FROM _new_data n "
        "LEFT JOIN seed_{feed} t USING (identifier) WHERE t.identifier IS NULL"
    ),
    (
        "CREATE TEMP TABLE _modified ON COMMIT DROP AS SELECT n.identifier FROM _new_data n "
        "JOIN seed_{feed} t USING (identifier) WHERE t.content_hash IS DISTINCT FROM n.content_hash"
    ),
    (
        "CREATE TEMP TABLE _removed ON COMMIT DROP AS SELECT t.identifier FROM seed_{feed} t "
        "LEFT JOIN _new_data n USING (identifier) WHERE n.identifier IS NULL"
    ),
)
_APPLY = (
    "INSERT INTO seed_{feed} SELECT n.* FROM _new_data n JOIN _added USING (identifier)",
    (
        "UPDATE seed_{feed} t SET account_type = n.account_type, first_creation_time = n.first_creation_time, "
        "title = n.title, title_lower = n.title_lower, type = n.type, aliases_json = n.aliases_json, "
        "content_hash = n.content_hash FROM _new_data n JOIN _modified m USING (identifier) "
        "WHERE t.identifier = n.identifier"
    ),
    "DELETE FROM seed_{feed} t USING _removed r WHERE t.identifier = r.identifier",
)
_LOG = """
INSERT INTO seed_changelog
SELECT gen_random_uuid(), {number}, n.identifier, 1, NOW() AT TIME ZONE 'Europe/Istanbul', n.title, n.account_type,
       n.type, n.first_creation_time, n.aliases_json FROM _new_data n JOIN _added USING (identifier)
UNION ALL
SELECT gen_random_uuid(), {number}, n.identifier, 2, NOW() AT TIME ZONE 'Europe/Istanbul', n.title, n.account_type,
       n.type, n.first_creation_time, n.aliases_json FROM _new_data n JOIN _modified USING (identifier)
UNION ALL
SELECT gen_random_uuid(), {number}, identifier, 3, NOW() AT TIME ZONE 'Europe/Istanbul', NULL, NULL, NULL, NULL, NULL
FROM _removed
"""


def _rows(path: Path, role: str) -> Iterator[tuple[object, ...]]:
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as file:
        events = ET.iterparse(file, ("start", "end"))
        _, root = next(events)
        for event, element in events:
            if event == "end" and element.tag == "User":
                title = element.findtext("Title") or ""
                documents = [
                    {
                        "Type": document.get("type"),
                        "Aliases": [
                            {
                                "Alias": alias.findtext("Name"),
                                "Type": role,
                                "CreationTime": alias.findtext("CreationTime"),
                            }
                            for alias in document
                            if alias.find("DeletionTime") is None
                        ],
                    }
                    for document in element.find("Documents")
                ]
                yield (
                    element.findtext("Identifier"),
                    element.findtext("AccountType"),
                    element.findtext("FirstCreationTime"),
                    title,
                    turkish.lower(title),
                    element.findtext("Type"),
                    json.dumps(documents),
                )
                root.clear()


def postmaster_of(address: str) -> int:
    """The server's first process: those that work for a query are below it, and end there."""
    with psycopg.connect(address) as connection:
        backend = connection.info.backend_pid
        return int(Path(f"/proc/{backend}/stat").read_text().rpartition(")")[2].split()[1])


def run(address: str, paths: dict[str, Path], tree_cpu: Callable[[int], float]) -> dict[str, float]:
    server = postmaster_of(address)
    began, own, at_first = time.monotonic(), time.process_time(), tree_cpu(server)
    counts = {}
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(_TABLES)
        for feed in ("einvoice", "edespatch"):
            connection.execute(_MAIN.format(feed=feed))
        with connection.transaction():
            for role in ("PK", "GB"):
                table = f"seed_temp_{role.lower()}"
                connection.execute(f"TRUNCATE {table}")
                connection.execute(f"DROP INDEX IF EXISTS {table}_key, {table}_documents")  # made anew after the COPY
                with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
                    for row in _rows(paths[role], role):
                        copy.write_row(row)
                connection.execute(f"CREATE INDEX {table}_key ON {table} (identifier)")
                connection.execute(f"CREATE INDEX {table}_documents ON {table} USING gin (documents)")
            for number, (feed, document) in enumerate((("einvoice", "Invoice"), ("edespatch", "DespatchAdvice")), 1):
                counts[feed] = _feed(connection, feed, document, number)
                for name in ("_new_data", "_added", "_modified", "_removed"):
                    connection.execute(f"DROP TABLE {name}")
        for feed in counts:
            connection.execute(f"REFRESH MATERIALIZED VIEW CONCURRENTLY seed_mv_{feed}")
    spent = tree_cpu(server) - at_first
    return {
        "wall": time.monotonic() - began,
        "cpu": time.process_time() - own + spent,
        "changes": sum(counts.values()),
    }


def clean(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        for table in ("einvoice", "edespatch", "temp_pk", "temp_gb", "changelog"):
            connection.execute(f"DROP TABLE seed_{table} CASCADE")


def _feed(connection: psycopg.Connection, feed: str, document: str, number: int) -> int:
    (before,) = connection.execute(f"SELECT COUNT(*) FROM seed_{feed}").fetchone()
    connection.execute(_NEW.format(document=document))
    for statement in _DIFF:
        connection.execute(statement.format(feed=feed))
    for statement in _APPLY:
        connection.execute(statement.format(feed=feed))
    found = connection.execute(
        "SELECT (SELECT COUNT(*) FROM _added) + (SELECT COUNT(*) FROM _modified) + (SELECT COUNT(*) FROM _removed)"
    ).fetchone()[0]
    if before:
        connection.execute(_LOG.format(number=number))
    return int(found)
