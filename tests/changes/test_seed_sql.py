"""The merge and its hash beside the seed's own SQL, on the same PostgreSQL: the same records, the same MD5."""

from __future__ import annotations

import json

import pytest

from ulak.changes import turkish
from ulak.changes.generator import Plan, users_of
from ulak.changes.sources import gib_block
from ulak.changes.sources.gib import GibSource

pytestmark = pytest.mark.postgres

TABLES = """
CREATE TABLE gib_user_temp_{role} (identifier text, account_type text, first_creation_time timestamp, title text,
    title_lower text, type text, documents jsonb)
"""
# Of the seed, with C collation where its MAX and ORDER BY depend on the database's.
MERGE = """
WITH docs AS (
    SELECT t.identifier, t.account_type, t.first_creation_time, t.title, t.title_lower, t.type, d.value AS doc
    FROM gib_user_temp_pk t CROSS JOIN LATERAL jsonb_array_elements(t.documents) d
    WHERE d.value ->> 'Type' = %(document)s
    UNION ALL
    SELECT t.identifier, t.account_type, t.first_creation_time, t.title, t.title_lower, t.type, d.value AS doc
    FROM gib_user_temp_gb t CROSS JOIN LATERAL jsonb_array_elements(t.documents) d
    WHERE d.value ->> 'Type' = %(document)s
),
flat_aliases AS (
    SELECT docs.identifier, docs.account_type, docs.first_creation_time, docs.title, docs.title_lower, docs.type,
           a.value AS al
    FROM docs CROSS JOIN LATERAL jsonb_array_elements(docs.doc -> 'Aliases') a
),
aggregated AS (
    SELECT identifier, MAX(account_type COLLATE "C") AS account_type, MAX(first_creation_time) AS first_creation_time,
           MAX(title COLLATE "C") AS title, MAX(title_lower COLLATE "C") AS title_lower, MAX(type COLLATE "C") AS type,
           string_agg((al ->> 'Alias') || ':' || (al ->> 'Type'), ','
                      ORDER BY (al ->> 'Alias') COLLATE "C", (al ->> 'Type') COLLATE "C") AS alias_signature
    FROM flat_aliases GROUP BY identifier
)
SELECT identifier, account_type, first_creation_time::text, title, type,
       md5(identifier || COALESCE(title_lower, '') || COALESCE(account_type, '') || COALESCE(type, '') ||
           first_creation_time::text || COALESCE(alias_signature, ''))
FROM aggregated
"""


def rows_of(role: str, plan: Plan):
    for text in users_of(role, plan):
        user = gib_block.read_user(text.strip().encode())
        documents = [
            {"Type": name, "Aliases": [{"Alias": alias, "Type": role} for alias, _ in live]}
            for name, live in user.documents.items()
        ]
        title = f"{user.title} {role}" if int(user.identifier) % 7 == 0 else user.title
        yield user, title, documents


def test_content_hashes_equal_those_of_the_seeds_sql():
    import psycopg

    from tests.postgres_server import fresh_database

    source, plan = GibSource(), Plan(1500, 2, 0.1)
    parts: dict[str, dict[str, dict]] = {"einvoice": {}, "edespatch": {}}
    with fresh_database() as address, psycopg.connect(address) as connection:
        for role in ("PK", "GB"):
            connection.execute(TABLES.format(role=role.lower()))
            for user, title, documents in rows_of(role, plan):
                connection.execute(
                    f"INSERT INTO gib_user_temp_{role.lower()} VALUES (%s, %s, %s, %s, %s, %s, %s)",
                    (
                        user.identifier,
                        user.account_type,
                        user.first_creation_time,
                        title,
                        turkish.lower(title),
                        user.type,
                        json.dumps(documents),
                    ),
                )
                scalars = [user.account_type, user.first_creation_time, title, user.type]
                for name, live in user.documents.items():
                    feed = {"Invoice": "einvoice", "DespatchAdvice": "edespatch"}[name]
                    if live:
                        parts[feed].setdefault(user.identifier, {})[role] = (scalars, live)
        for feed, document in (("einvoice", "Invoice"), ("edespatch", "DespatchAdvice")):
            found = {row[0]: row[1:] for row in connection.execute(MERGE, {"document": document})}
            ours = {}
            for identifier, own in parts[feed].items():
                merged = source.merge(feed, identifier, own)
                fields = merged.fields
                first = fields["firstCreationTime"].replace("T", " ")
                ours[identifier] = (fields["accountType"], first, fields["title"], fields["type"], merged.content_hash)
            assert ours == found
            assert len(found) > 400
