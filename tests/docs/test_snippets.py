"""The Python on these pages runs as it stands, and the commands on all pages exist.

A page is one program: its snippets run in order and share their names, with a bare `await` allowed, as in
`python -m asyncio`. A snippet that begins with `# name.py` can be imported by the later ones, and its tests are called.
"""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.postgres_server import fresh_database
from ulak.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
ON_A_FILE = [
    "howto/configure.md",
    "howto/follow-a-list.md",
    "howto/operate.md",
    "howto/run-cpu-work.md",
    "howto/run-jobs.md",
    "howto/test-your-handlers.md",
    "howto/trace-with-opentelemetry.md",
    "howto/verify-a-webhook.md",
    "reference/python.md",
    "tutorial/first-job.md",
    "tutorial/ilk-is.md",
    "tutorial/first-computation.md",
]
PROGRAMS = ["tutorial/first-action-plan.md", "tutorial/first-notification.md"]  # whole ones, with their own loop
ON_POSTGRES = ["howto/enqueue-in-your-transaction.md", "howto/move-to-postgresql.md"]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# ([\w/]+\.py)\n")


async def run(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "page"}
    for found in FENCE.finditer(text):
        if found[1] != "python":
            continue
        if file := FILE.match(found[2]):
            Path(file[1]).parent.mkdir(exist_ok=True)
            Path(file[1]).write_text(found[2], encoding="utf-8")
        above = "\n" * text.count("\n", 0, found.start(2))  # so that a traceback names the page's own line
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = compile(above + found[2], str(page), "exec", flags=flags, dont_inherit=True)
        answer = eval(code, names)
        if inspect.isawaitable(answer):
            await answer
    for test in [value for name, value in names.items() if name.startswith("test_")]:
        await test()


@pytest.fixture
def _folder(tmp_path, monkeypatch):
    """An empty folder to work in, from which can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for module in [name for name in sys.modules if (tmp_path / f"{name}.py").exists()]:
        del sys.modules[module]


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("name", ON_A_FILE)
async def test_the_snippets_of_a_page_run(name):
    await run(ROOT / "docs" / name)


@pytest.mark.postgres
@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("name", ON_POSTGRES)
async def test_the_snippets_of_a_page_run_on_postgresql(name, monkeypatch):
    with fresh_database() as address:
        monkeypatch.setenv("DATABASE_URL", address)
        await run(ROOT / "docs" / name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_of_a_page_runs(name, tmp_path):
    (program,) = [
        text for language, text in FENCE.findall((ROOT / "docs" / name).read_text("utf-8")) if language == "python"
    ]
    words = [sys.executable, "-W", "error", "-c", program]
    environment = {"PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def commands(page: Path):
    fences = FENCE.findall(page.read_text(encoding="utf-8"))
    for block in [text for language, text in fences if language in {"", "bash"}]:
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.partition(" #")[0].partition(" >")[0]) if "ulak " in line else []
            while words and "=" in words[0]:  # variables for this command only
                words.pop(0)
            if words[:1] == ["ulak"]:
                yield words[1:]


def mistake(words: list[str]) -> str | None:
    """What of a command line the commands do not know, or what they want and it lacks."""
    command = typer.main.get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return words[0]
        command, words = command.commands[words[0]], words[1:]
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    given = [word.partition("=")[0] for word in words if word.startswith("--")]
    strange = next((word for word in given if word not in options | {"--help"}), None)
    return strange or lacking(command, words)


def lacking(command: Any, words: list[str]) -> str | None:
    """A required argument or option that is not given; whether a file is there is not asked."""
    if "--help" in words:
        return None
    values, _, _ = command.make_parser(command.context_class(command)).parse_args(list(words))
    wanted = [parameter for parameter in command.params if parameter.required]
    return next((str(parameter.name) for parameter in wanted if values.get(parameter.name) is None), None)


def test_the_commands_on_a_page_exist():
    wrong = [(str(page.relative_to(ROOT)), words) for page in PAGES for words in commands(page) if mistake(words)]
    assert wrong == []
