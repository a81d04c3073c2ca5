"""Every room has all that a room has, and only tables of its own."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from ulak import Ulak
from ulak.http.app import routes_of
from ulak.rooms import LINES, NAMES
from ulak.settings import Settings
from ulak.stores.migrate import migrations, tables

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ulak"
FILES = ("room.py", "model.py", "decide.py", "jobs.py", "service.py")
WITH_TABLES = ("records.py", "queries", "migrations")
# Tables behind these words; a name after them that is a table of somebody else is not ours to touch.
TOUCHED = re.compile(r"\b(?:from|join|into|update|table)\s+(?:only\s+)?([a-z_]+)", re.IGNORECASE)
MADE = re.compile(r"^CREATE (?:TABLE|VIEW) (\w+)", re.MULTILINE)
MAX_MODULES = 25


@pytest.fixture(scope="module")
def ulak():
    return Ulak(settings=Settings(store="memory:"))


def test_a_room_lacks_nothing(ulak):
    assert {room.name: lacking for room in ulak.rooms if (lacking := what_lacks(ulak, room))} == {}


def what_lacks(ulak, room) -> list[str]:
    package = SOURCE / room.name
    wanted = FILES + (WITH_TABLES if (package / "migrations").exists() else ())
    lacking = [name for name in wanted if not (package / name).exists()]
    lacking += [place for place in places_of(room.name) if not place.exists()]
    lacking += [] if hasattr(ulak.settings, room.name) else [f"a section {room.name} in the settings"]
    lacking += [] if isinstance(getattr(ulak, room.name, None), type(room.service)) else [f"Ulak.{room.name}"]
    return lacking + what_doors_lack(ulak, room)


def places_of(name: str) -> list[Path]:
    return [ROOT / "docs/reference" / f"{name}.md", ROOT / "tests" / name, SOURCE / "settings" / f"{name}.py"]


def what_doors_lack(ulak, room) -> list[str]:
    lacking = [
        module
        for module in (f"ulak.{door}.{room.name}" for door in ("http.routes", "cli.commands", "console.pages"))
        if find_spec(module) is None
    ]
    if lacking:
        return lacking
    made = routes_of(ulak, room.name)
    lacking += [] if made.scope else ["a scope that its routes explain"]
    lacking += [] if made.hot or made.routers else ["routes"]
    return lacking + ([] if callable(import_module(f"ulak.cli.commands.{room.name}").register) else ["commands"])


def test_the_list_names_rooms_as_they_name_themselves(ulak):
    assert [room.name for room in ulak.rooms] == list(NAMES)


def owned(ulak) -> dict[str, set[str]]:
    """By line: the tables that it may have, as far as the names that it makes fit."""
    given = {room.name: set(room.tables) for room in ulak.rooms}
    return {
        line.name: {
            table
            for dialect in ("sqlite", "postgres")
            for table in tables([line], dialect)
            if line.name == "spine" or table.startswith(f"{line.name}_") or table in given.get(line.name, ())
        }
        for line in LINES
    }


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_a_line_makes_only_tables_of_its_own_name_or_that_a_document_gives(ulak, dialect):
    mine = owned(ulak)
    assert {line.name: wrong for line in LINES if (wrong := set(tables([line], dialect)) - mine[line.name])} == {}


def test_every_line_has_the_same_versions_on_both_stores():
    def versions(line, dialect):
        return [one.version for one in migrations(line, dialect)]

    assert [line.name for line in LINES if versions(line, "sqlite") != versions(line, "postgres")] == []


def test_the_tables_that_a_document_gives_are_made(ulak):
    """As tables, or as views over tables of the room's own; one store may do without a view."""
    made = {
        line.name: {
            name
            for dialect in ("sqlite", "postgres")
            for one in migrations(line, dialect)
            for name in MADE.findall(one.script)
        }
        for line in LINES
    }
    assert {room.name: wrong for room in ulak.rooms if (wrong := set(room.tables) - made[room.name])} == {}


def test_queries_touch_only_tables_of_their_own(ulak):
    """What a room needs of jobs it asks of the spine: `page_of_records`, `read_record`, events, units."""
    mine = owned(ulak)
    everything = set().union(*mine.values()) | {"schema_version"}
    wrong = {}
    for line in LINES:
        foreign = everything - mine[line.name]
        for path in sorted((SOURCE / line.name).rglob("queries/*.sql")):
            text = re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8"))
            if touched := set(TOUCHED.findall(text)) & foreign:
                wrong[str(path.relative_to(SOURCE))] = sorted(touched)
    assert wrong == {}


def test_doors_have_no_sql():
    assert [str(path) for door in ("http", "cli", "console") for path in (SOURCE / door).rglob("*.sql")] == []


def test_no_folder_holds_more_modules_than_a_reader_can():
    folders = {path.parent for path in SOURCE.rglob("*.py")}
    counts = {
        str(one.relative_to(SOURCE)): len(list(one.glob("*.py"))) - (one / "__init__.py").exists() for one in folders
    }
    assert {folder: number for folder, number in counts.items() if number > MAX_MODULES} == {}
