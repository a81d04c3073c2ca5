"""The documentation is complete and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from ulak.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)#\s]+)")


def commands(group, *path):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *path, name)
        else:
            yield " ".join([*path, name])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("command", list(commands(typer.main.get_command(app), "ulak")))
def test_every_command_is_documented(command):
    assert f"`{command}" in (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", ["tutorial", "howto", "reference", "explanation", "decisions"])
def test_every_page_is_listed_in_its_index(folder):
    index = (ROOT / "docs" / folder / "index.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs" / folder).glob("*.md")} - {"index.md"}
    assert {page for page in pages if f"({page})" not in index} == set()
