"""A room is added by its package, its modules in the doors, a section of the settings, and a line in rooms.py."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "ulak"

FILES = {
    "tiny/__init__.py": '"""Tiny: notes."""\n',
    "tiny/migrations/0001_first.sqlite.sql": "CREATE TABLE tiny_note (id INTEGER PRIMARY KEY, text TEXT NOT NULL);\n",
    "tiny/migrations/0001_first.postgres.sql": "CREATE TABLE tiny_note (id bigint PRIMARY KEY, text text NOT NULL);\n",
    "tiny/queries/insert_note.sql": "INSERT INTO tiny_note (id, text) VALUES (:id, :text)\n",
    "tiny/queries/count_notes.sql": "SELECT count(*) FROM tiny_note\n",
    "tiny/service.py": """
from ulak.spine.query import Queries

sql = Queries(__package__)


class Tiny:
    def __init__(self, host):
        self._host = host
        self.kept = 0

    async def keep(self, job):
        await self._host.store.write(lambda tx: tx.execute(sql.insert_note, id=job.id, text=job.payload))
        self.kept += 1

    async def count(self):
        return (await self._host.store.read(lambda tx: tx.row(sql.count_notes)))[0]
""",
    "tiny/room.py": """
from ulak.spine.handler import Handler
from ulak.spine.room import Room
from ulak.spine.telemetry import GaugePoint
from ulak.tiny.service import Tiny


def tiny_room(host):
    service = Tiny(host)
    started = []

    async def start():
        started.append(host.store.name)

    return Room(
        "tiny",
        service,
        handlers=(Handler("tiny.keep", service.keep, concurrency=host.settings.tiny.concurrency),),
        gauges=lambda: [GaugePoint("tiny_notes_total", "Notes kept by this process.", {}, service.kept)],
        reasons=lambda: [f"tiny was started on {len(started)} store(s)"],
        start=start,
    )
""",
    "settings/tiny.py": '''
from pydantic import Field

from ulak.settings.section import Section


class TinySection(Section):
    """Notes."""

    concurrency: int = Field(3, ge=1, le=9, description="How many at once.")
''',
    "http/routes/tiny.py": """
from fastapi import APIRouter, Depends

from ulak.http.caller import Needs
from ulak.http.hot_routes import Routes


def routes(ulak):
    router = APIRouter(prefix="/api/tiny", dependencies=[Depends(Needs("tiny"))])

    @router.get("/count")
    async def count() -> dict[str, int]:
        return {"notes": await ulak.tiny.count()}

    return Routes(routers=(router,), scope="count notes")
""",
    "console/pages/tiny.py": """
from ulak.console.page import Column, ConsolePage, FactList

NOTES = FactList("Notes", "/api/tiny/count", (Column("Notes that are kept", "notes", "number"),))
PAGES = (ConsolePage("tiny", "Tiny notes", (NOTES,), "capabilities"),)
""",
    "cli/commands/tiny.py": '''
import typer

from ulak.cli.command import Api, Shown, asks, lines

tiny = typer.Typer(help="Notes.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(tiny, name="tiny")


@asks(tiny)
async def count(api: Api) -> Shown:
    """How many there are."""
    found = await api.ask("GET", "/api/tiny/count")
    return found, lines(f"{found['notes']} note(s)")
''',
}
# The only lines of other files, and where they go.
LINES = {
    "rooms.py": ("    notify: Namespace[Notify]", "    tiny: Namespace[Any] = Namespace()\n"),
    "settings/tree.py": ("    log: Log = Log()\n", "    tiny: TinySection = TinySection()\n"),
}
IMPORTS = {"settings/tree.py": ("from ulak.settings.worker import", "from ulak.settings.tiny import TinySection\n")}

USE = """
import asyncio, sqlite3
import aiohttp, ulak
from ulak.http.app import build_app
from ulak.http.server import address_of, listen, listening
from ulak.settings import load
from ulak.testing import drain

async def main():
    settings = load(overrides={"store": "sqlite:///ulak.db", "http.port": 0}).settings
    async with ulak.Ulak(settings=settings) as one:
        await one.enqueue("tiny.keep", "hello")
        await drain(one)
        door, listener = build_app(one), listen(settings.http)
        async with door.life(), listening(door, listener), aiohttp.ClientSession() as session:
            for path in ("/api/tiny/count", "/metrics", "/console/tiny", "/openapi.json"):
                print(await (await session.get(address_of(listener) + path)).text())
        print("scope:", door.scopes.texts["tiny"])
        print("reasons:", [reason for room in one.rooms for reason in room.reasons()])

asyncio.run(main())
print(sqlite3.connect("ulak.db").execute("SELECT line, version FROM schema_version WHERE line = 'tiny'").fetchall())
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the source with one room more."""
    root = tmp_path_factory.mktemp("tree")
    shutil.copytree(SOURCE, root / "ulak", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in FILES.items():
        path = root / "ulak" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for added in (LINES, IMPORTS):
        for name, (before, line) in added.items():
            path = root / "ulak" / name
            text = path.read_text(encoding="utf-8")
            assert before in text
            path.write_text(re.sub(re.escape(before), lambda found: line + found[0], text, count=1), encoding="utf-8")  # noqa: B023
    return root


def run(tree, folder, *arguments):
    ours = {name: value for name, value in os.environ.items() if not name.upper().startswith("ULAK_")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**ours, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_jobs_tables_routes_metrics_page_scope_and_commands_work(tree, tmp_path):
    told = run(tree, tmp_path, "-c", USE)
    assert told.startswith('{"notes":1}\n')
    assert "tiny_notes_total 1.0" in told
    assert 'href="/console/tiny"' in told
    assert re.search(r"<dt>Notes that are kept</dt>\s*<dd[^>]*>1</dd>", told)
    assert '"/api/tiny/count"' in told
    assert "scope: count notes" in told
    assert "tiny was started on 1 store(s)" in told
    assert "[('tiny', 1)]" in told
    assert run(tree, tmp_path, "-m", "ulak", "tiny", "count") == "1 note(s)\n"
    assert "tiny.concurrency" in run(tree, tmp_path, "-m", "ulak", "config", "show")
    assert "tiny" in run(tree, tmp_path, "-m", "ulak", "--help")


def test_its_table_is_moved_with_the_others(tree, tmp_path):
    code = "from ulak.rooms import LINES; from ulak.stores.move import work_of; print('tiny_note' in work_of(LINES))"
    assert run(tree, tmp_path, "-c", code) == "True\n"


def test_it_may_lack_a_page_of_the_console(tree, tmp_path):
    bare = tmp_path / "tree"
    shutil.copytree(tree, bare, ignore=shutil.ignore_patterns("__pycache__"))
    (bare / "ulak/console/pages/tiny.py").unlink()
    code = "import ulak.http.app as door; from ulak import Ulak; print(door.build_app(Ulak()).scopes.texts['tiny'])"
    assert run(bare, tmp_path, "-c", code) == "count notes\n"
