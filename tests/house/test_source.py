"""Rules of the house that no tool checks for us."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "ulak"
MODULES = {str(path.relative_to(SOURCE)): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}
QUERIES = {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in SOURCE.rglob("queries/*.sql")}
WALL_CLOCK = {"time.time", "time.time_ns", "time.localtime", "time.gmtime"} | {
    f"{name}.{verb}" for name in ("datetime", "datetime.datetime", "date") for verb in ("now", "utcnow", "today")
}
MONOTONIC = {"time.monotonic", "time.monotonic_ns", "time.perf_counter", "time.perf_counter_ns"}
SQL_TIME = re.compile(
    r"\bnow\s*\(|current_time|current_date|clock_timestamp|'now'|unixepoch|julianday|strftime", re.IGNORECASE
)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_says_what_belongs_in_it(name):
    assert not MODULES[name].body or ast.get_docstring(MODULES[name]), f"{name} has no docstring"


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_sorted_and_exist(name):
    names = public_names(MODULES[name])
    assert names == sorted(names, key=lambda word: (not word.isupper(), not word[0].isupper(), word))
    assert set(names) <= defined_names(MODULES[name])


def test_the_package_exports_all_that_it_imports():
    tree = MODULES.get("__init__.py", ast.Module([], []))
    imported = {
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert imported - {"annotations"} <= set(public_names(tree)) | {name for name in imported if name.startswith("_")}


@pytest.mark.parametrize("name", MODULES)
def test_only_the_clock_asks_for_the_time(name):
    # The compute room's processes measure for themselves; they never ask what time it is.
    forbidden = WALL_CLOCK | (set() if name.startswith("compute/") else MONOTONIC)
    assert name == "clock.py" or not asked(MODULES[name]) & forbidden


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_named_by_verb_and_noun(name):
    assert re.fullmatch(r"[a-z]+(_[a-z]+)+(\.(sqlite|postgres))?\.sql", Path(name).name)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_receives_the_time_and_never_asks_for_it(name):
    # The one exception measures how far the database's clock is from ours.
    assert Path(name).name.startswith("read_clock") or not SQL_TIME.search(without_comments(QUERIES[name]))


def public_names(tree):
    for node in tree.body:
        if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == ["__all__"]:
            return ast.literal_eval(node.value)
    return []


def defined_names(tree):
    names = set()
    for node in tree.body:
        match node:
            case ast.Import() | ast.ImportFrom():
                names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def asked(tree):
    """Dotted names that are read, and names imported from `time`."""
    dotted = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            dotted |= {f"time.{alias.name}" for alias in node.names}
    return dotted


def without_comments(sql):
    return re.sub(r"--[^\n]*", "", sql)
