"""The documentation is complete and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import typer

from ulak.cli import app
from ulak.spine.loops import worker

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
MAX_CHANGE = 140  # characters: a line of the changelog is one change, and is read at once
LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)#\s]+)")


def commands(group, *path):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *path, name)
        else:
            yield " ".join([*path, name])


def test_links_lead_somewhere():
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_every_file_that_the_architecture_names_exists():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    sources = [str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.py")]
    sources += [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("*.py")]
    named = set(re.findall(r"`([\w/]+\.py)`", text))
    assert len(named) > 20
    assert [name for name in sorted(named) if not any(f"/{path}".endswith(f"/{name}") for path in sources)] == []


def test_the_workers_wiring_is_drawn_in_the_architecture_as_at_the_head_of_its_module():
    drawing = (worker.__doc__ or "").partition("\n\n")[2].strip("\n")
    assert "AttemptRunner" in drawing
    assert f"```\n{drawing}\n```" in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_a_change_is_one_line_of_the_changelog():
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    told = lines[lines.index("## Unreleased") + 1 :]
    assert [line for line in told if line.startswith(" ") or len(line) > MAX_CHANGE + len("- ")] == []


def test_no_line_of_the_changelog_stands_twice():
    """Merges keep the lines of both sides (merge=union), so a section that was moved could come back."""
    lines = [line for line in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines() if line]
    assert sorted({line for line in lines if lines.count(line) > 1}) == []


def test_every_command_is_documented():
    page = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    assert [one for one in commands(typer.main.get_command(app), "ulak") if f"`{one}" not in page] == []


def test_every_page_is_listed_in_its_index():
    missing = []
    for folder in ("tutorial", "howto", "reference", "explanation", "decisions"):
        index = (ROOT / "docs" / folder / "index.md").read_text(encoding="utf-8")
        pages = {page.name for page in (ROOT / "docs" / folder).glob("*.md")} - {"index.md"}
        missing += [f"{folder}/{page}" for page in sorted(pages) if f"({page})" not in index]
    assert missing == []
