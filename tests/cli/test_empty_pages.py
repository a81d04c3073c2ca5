"""Empty pages of the console name the one command that fills them: run as they stand, the pages have something."""

from __future__ import annotations

import asyncio
import shlex
from importlib import import_module
from pathlib import Path

from tests.api.serving import serving
from ulak.console.page import Table

ROOMS = ("actions", "compute", "dispatch", "engine", "jobs", "notify", "system")
RUN_ON = ("ulak serve", "ulak worker")  # they end by a signal


def named_by_pages():
    """Each command with the page and the words that it takes away; those with a placeholder are left out."""
    pages = [page for name in ROOMS for page in import_module(f"ulak.console.pages.{name}").PAGES]
    tables = [(page.path, one.empty) for page in pages for one in page.parts if isinstance(one, Table)]
    return [
        (path, empty.text, empty.command)
        for path, empty in tables
        if isinstance(empty.command, str) and empty.command.startswith("ulak ")
        if not empty.command.startswith(RUN_ON) and "{" not in path
    ]


async def test_the_commands_that_empty_pages_name_fill_them(ulak):
    Path("scripts").mkdir()
    Path("scripts/hello.py").write_text("def main(params, context):\n    return 1\n", encoding="utf-8")
    named = named_by_pages()
    for command in sorted({command for *_, command in named}):
        await asyncio.to_thread(ulak, *shlex.split(command)[1:])
    async with serving(store="sqlite:///ulak.db") as served:
        await settle(served)
        pages = {path: (await served.get(f"/console/{path}?lang=en")).text for path, *_ in named}
    still = {(path, text) for path, text, _ in named if f"<b>{text}</b>" in pages[path]}
    assert still == set()


async def settle(served):
    """Until the webhook that nobody may call is dead, and the first task has been taken by a process."""
    for kind, status in (("notify.webhook", "dead"), ("compute.run.io", "done")):
        (job, *_) = (await served.get(f"/api/jobs?kind={kind}")).body["jobs"]
        await served.settled(job["id"], status)
