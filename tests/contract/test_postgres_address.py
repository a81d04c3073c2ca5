"""PostgreSQL addresses: read as libpq reads them, and their secrets never shown."""

from __future__ import annotations

import traceback
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from ulak.clock import SystemClock
from ulak.errors import Misconfigured
from ulak.settings import Settings
from ulak.stores.postgres.address import read_address
from ulak.stores.postgres.connections import connect
from ulak.stores.postgres.store import PostgresStore


def store(address: str) -> PostgresStore:
    return PostgresStore(address, SystemClock(), lambda _: 1)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ulak:hun%ter2@db/ulak",
        "postgresql://ulak:hun@ter2@db/ulak",
        "postgresql://ulak:hun/ter2@db/ulak",
        "postgresql://ulak:ter2@[::1/ulak",
        "postgresql://ulak@db/ulak?password=hunter2&sslmod=require",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_without_showing_it(address):
    with pytest.raises(Misconfigured, match="can't be read") as refusal:
        store(address)
    assert "ter2" not in "".join(traceback.format_exception(refusal.value))


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("postgresql://ulak:hunter2@db/ulak", "postgresql://ulak:***@db/ulak"),
        ("postgresql://ulak:hun?t#er2@db/ulak", "postgresql://ulak:***@db/ulak"),
        ("postgresql:///ulak?user=ulak&password=hunter2", "postgresql:///ulak?user=ulak&password=***"),
        ("postgresql://db/ulak?sslpassword=hunter2&sslmode=require", "postgresql://db/ulak?sslpassword=***&sslmode=require"),
        ("postgresql://ulak@a:1,b:2/ulak", "postgresql://ulak@a:1,b:2/ulak"),
    ],
)  # fmt: skip
def test_the_name_of_a_store_shows_no_secret(address, name):
    assert store(address).name == name


def test_special_characters_are_written_in_percent():
    secret = "p@ss/w:rd%?#&[ ş"
    assert read_address(f"postgresql://ulak:{quote(secret, safe='')}@db/ulak")["password"] == secret


def test_an_address_may_choose_its_timeout_and_its_name_but_not_the_encoding():
    usual = read_address("postgresql:///ulak")
    assert (usual["connect_timeout"], usual["application_name"]) == (5, "ulak")
    own = read_address("postgresql:///ulak?connect_timeout=9&application_name=shop&client_encoding=latin1")
    assert (own["connect_timeout"], own["application_name"], own["client_encoding"]) == ("9", "shop", "utf8")


def test_both_schemes_of_libpq_are_taken():
    assert Settings(store="postgres://db/ulak").store == "postgres://db/ulak"


@pytest.mark.postgres
def test_a_service_file_names_the_database(database, tmp_path, monkeypatch):
    parts = urlsplit(database)
    folder = parse_qs(parts.query)["host"][0]
    (tmp_path / "services").write_text(f"[shop]\nhost={folder}\ndbname={parts.path[1:]}\nuser=postgres\n")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    with connect("postgresql://?service=shop") as connection:
        assert connection.info.dbname == parts.path[1:]


@pytest.mark.postgres
async def test_several_hosts_are_tried_until_one_takes_writes(opened, database):
    folder = parse_qs(urlsplit(database).query)["host"][0]
    several = database.replace(folder, f"/nowhere,{folder}") + "&target_session_attrs=read-write"
    async with opened(several) as bench:
        assert await bench.add()
