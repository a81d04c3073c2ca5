"""On PostgreSQL the seed's own names are views: whoever reads its tables today reads the same columns."""

from __future__ import annotations

import psycopg
import pytest

from tests.changes.conftest import opened
from tests.postgres_server import fresh_database

pytestmark = pytest.mark.postgres

USERS = "identifier account_type first_creation_time title title_lower type aliases_json content_hash"
COLUMNS = {
    "e_invoice_gib_users": USERS,
    "e_despatch_gib_users": USERS,
    "gib_user_changelog": (
        "id document_type identifier change_type changed_at title account_type type first_creation_time aliases_json"
    ),
    "sync_metadata": "registry sync_id status verdict error started_at last_sync_at",
}


async def test_the_seeds_tables_are_views_of_what_is_published(tmp_path, clock):
    with fresh_database() as address:
        async with opened(address, tmp_path, clock) as desk:
            await desk.publish(range(1, 21))
            report = await desk.publish(range(2, 22), title="YENİ")
            with psycopg.connect(address) as connection:
                for view, columns in COLUMNS.items():
                    found = connection.execute(f"SELECT * FROM {view} LIMIT 0").description
                    assert [column.name for column in found] == columns.split(), view
                users = connection.execute("SELECT identifier, title_lower FROM e_invoice_gib_users").fetchall()
                assert {(f"{number:010d}", f"yeni {number}") for number in range(2, 22)} == set(users)
                told = connection.execute(
                    "SELECT change_type, count(*), count(title) FROM gib_user_changelog WHERE document_type = 1"
                    " GROUP BY 1 ORDER BY 1"
                ).fetchall()
                assert told == [(1, 1, 1), (2, 19, 19), (3, 1, 0)]
                (stamp,) = connection.execute("SELECT DISTINCT changed_at FROM gib_user_changelog").fetchone()
                assert stamp.isoformat() == report.feeds["einvoice"].until
                aliases = connection.execute(
                    "SELECT aliases_json FROM e_invoice_gib_users WHERE identifier = '0000000002' UNION ALL "
                    "SELECT aliases_json FROM gib_user_changelog WHERE identifier = '0000000002' AND document_type = 1"
                ).fetchall()
                created = {"CreationTime": "2023-07-22T13:58:28"}
                told = [
                    {"Alias": f"urn:mail:{role}2@x.example", "Type": role.upper(), **created} for role in ("gb", "pk")
                ]
                assert aliases == [(told,), (told,)]


@pytest.mark.parametrize("view", COLUMNS)
async def test_nobody_writes_through_the_seeds_names(tmp_path, clock, view):
    with fresh_database() as address:
        async with opened(address, tmp_path, clock) as desk:
            await desk.publish(range(1, 3))
            column = COLUMNS[view].split()[2]
            for statement in (f"DELETE FROM {view}", f"UPDATE {view} SET {column} = {column}"):
                with psycopg.connect(address) as connection, pytest.raises(psycopg.Error):
                    connection.execute(statement)
