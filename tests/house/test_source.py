"""Rules of the house that no tool checks for us."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "ulak"
MODULES = {str(path.relative_to(SOURCE)): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}
QUERIES = {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in SOURCE.rglob("queries/*.sql")}
WALL_CLOCK = {"time.time", "time.time_ns", "time.localtime", "time.gmtime"} | {
    f"{name}.{verb}" for name in ("datetime", "datetime.datetime", "date") for verb in ("now", "utcnow", "today")
}
QUERY_NAME = re.compile(r"[a-z]+(_[a-z]+)+(\.(sqlite|postgres))?\.sql")
TESTS = Path(__file__).parents[1]
# Sleeps that are the matter of the test: a handler that hangs, a clock that passes.
SLEEPERS = {
    "contract/test_events.py: asyncio.sleep(0.001, [])",  # one look of a loop, written as an expression
    "flow/test_stop.py: asyncio.sleep(0.002)",  # a handler that takes a while
    "flow/test_stop.py: asyncio.sleep(1000)",  # and one that does not end
}
SECTIONS = {"Compute", "Notify", "Dispatch", "Changes", "Actions", "Worker", "Key"}
MONOTONIC = {"time.monotonic", "time.monotonic_ns", "time.perf_counter", "time.perf_counter_ns"}
HEADLESS = re.compile(r"(What|Who|Whoever|Whom|Whatever)\b")
MAX_LINES = 350
SQL_TIME = re.compile(
    r"\bnow\s*\(|current_time|current_date|clock_timestamp|'now'|unixepoch|julianday|strftime", re.IGNORECASE
)


def test_a_module_says_what_belongs_in_it():
    assert [name for name, tree in MODULES.items() if tree.body and not ast.get_docstring(tree)] == []


def test_a_docstring_begins_with_a_thing_or_a_verb():
    """Not with a clause without a head: its reader has to find the subject."""
    found = [
        f"{name}: {text.splitlines()[0]}"
        for name, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (text := ast.get_docstring(node) or "")
        and HEADLESS.match(text)
    ]
    assert found == []


def test_a_file_is_short_enough_to_be_read_at_once():
    lengths = {name: len((SOURCE / name).read_text(encoding="utf-8").splitlines()) for name in MODULES}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def test_public_names_are_sorted_and_exist():
    assert [name for name, tree in MODULES.items() if not names_are_in_order(tree)] == []


def names_are_in_order(tree):
    names = public_names(tree)
    in_order = sorted(names, key=lambda word: (not word.isupper(), not word[0].isupper(), word))
    return names == in_order and set(names) <= defined_names(tree)


def test_a_class_name_occurs_once_in_the_tree():
    places = defaultdict(list)
    for name, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    twice = {name: sorted(where) for name, where in places.items() if len(where) > 1}
    assert {name: where for name, where in twice.items() if not is_section(name, where)} == {}


def is_section(name, where):
    """A section of the settings bears the name of its room, and so does the room's service."""
    return name in SECTIONS and len(where) == 2 and any(place.startswith("settings/") for place in where)


def test_the_package_exports_all_that_it_imports():
    tree = MODULES.get("__init__.py", ast.Module([], []))
    imported = {
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert imported - {"annotations"} <= set(public_names(tree)) | {name for name in imported if name.startswith("_")}


def test_importing_the_package_loads_few_modules():
    """Whoever imports errors, outcomes or a type does not pay for the service; `ulak.Ulak` loads the rest."""
    code = (
        "import sys; before = len(sys.modules); import ulak; print(len(sys.modules) - before, 'aiohttp' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert int(told[0]) < 250
    assert told[1] == "False"


def test_only_the_clock_asks_for_the_time():
    found = {name: asked(tree) & forbidden_in(name) for name, tree in MODULES.items() if name != "clock.py"}
    assert {name: words for name, words in found.items() if words} == {}


def test_only_the_log_and_the_commands_know_structlog():
    """Everything else writes through `ulak.log`, which asks the host first and prints nothing on standard output."""
    known = [name for name, tree in MODULES.items() if "structlog" in imported(tree)]
    assert sorted(known) == ["cli/logs.py", "log.py"]


def imported(tree):
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return {alias.name for node in nodes for alias in node.names} | {getattr(node, "module", None) for node in nodes}


def forbidden_in(name):
    """The compute room's processes measure for themselves; they never ask what time it is."""
    return WALL_CLOCK if name.startswith("compute/") else WALL_CLOCK | MONOTONIC


def test_a_query_is_named_by_verb_and_noun():
    assert [name for name in QUERIES if not QUERY_NAME.fullmatch(Path(name).name)] == []


def test_every_query_is_used():
    code = "".join((SOURCE / name).read_text(encoding="utf-8") for name in MODULES)
    words = set(re.findall(r"\.(\w+)", code))
    assert [name for name in QUERIES if Path(name).name.partition(".")[0] not in words] == []


def test_a_query_receives_the_time_and_never_asks_for_it():
    # The one exception measures how far the database's clock is from ours.
    asking = [name for name, text in QUERIES.items() if SQL_TIME.search(without_comments(text))]
    assert [name for name in asking if not Path(name).name.startswith("read_clock")] == []


def test_tests_wait_for_what_they_need_and_do_not_sleep():
    """A short pause inside a loop that looks for something is a wait; any other is a guess at how long that takes."""
    found = [f"{path.relative_to(TESTS)}: {call}" for path in TESTS.rglob("*.py") for call in blind_sleeps(path)]
    harness = ("crash", "outside/")  # they make load at random times, and slow receivers
    assert sorted(set(found) - SLEEPERS - {one for one in found if one.startswith(harness)}) == []


def blind_sleeps(path):
    def walk(node, in_loop):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("sleep") and not is_pause(node, in_loop):
            yield ast.unparse(node)
        loops = in_loop or isinstance(node, ast.While | ast.For | ast.AsyncFor)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, loops)

    return walk(ast.parse(path.read_text(encoding="utf-8")), in_loop=False)


def is_pause(call, in_loop):
    seconds = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    return seconds == 0 or (in_loop and seconds is not None and seconds <= 0.1)


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
            case ast.If():  # for type checkers; a lazy import gives the name at run time
                names |= defined_names(node)
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
