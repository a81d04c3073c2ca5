"""Every word of the console has its Turkish, also those that come as data, and every sentence its singular."""

from __future__ import annotations

import ast
import re
import shlex
from datetime import UTC, datetime
from importlib import import_module, resources
from typing import get_args

import pytest

from ulak.actions.model import RunState, StepState
from ulak.changes.model import ChangeType, SyncStatus, SyncVerdict
from ulak.cli import command as whole_command
from ulak.compute.model import TaskStatus, TaskType
from ulak.console import page as parts
from ulak.console.format import HUES
from ulak.console.words import Say, singular, turkish
from ulak.dispatch.model import HelperStatus, OfferState, TaskState
from ulak.dispatch.nearby.eligible import REASONS
from ulak.notify.model import Status
from ulak.spine.breaker import BreakerState
from ulak.spine.job import JobEvent, Priority
from ulak.spine.outcome import ErrorClass

CONSOLE = resources.files("ulak.console")
IN_TEMPLATES = re.compile(r"""_\(\s*"((?:[^"\\]|\\.)*)\"""")
DYNAMIC = {"Overview", "Engine", "Capabilities", "System", "Auto", "Light", "Dark"}


def python_files():
    return [*CONSOLE.iterdir(), *(CONSOLE / "pages").iterdir()]


def said_in_python():
    """What say(…) is called with, a choice between two texts included."""
    calls = [
        node
        for file in python_files()
        if file.name.endswith(".py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and node.args and _name(node.func) == "say"
    ]
    return {one.value for call in calls for one in _choices(call.args[0]) if isinstance(one, ast.Constant)}


def _choices(node):
    return [*_choices(node.body), *_choices(node.orelse)] if isinstance(node, ast.IfExp) else [node]


def _name(function):
    return getattr(function, "id", None) or getattr(function, "attr", "")


def said_in_templates():
    texts = (file.read_text("utf-8") for file in (CONSOLE / "templates").iterdir())
    return {word for text in texts for word in IN_TEMPLATES.findall(text)}


def said_in_pages():
    found = set()

    def walk(value):
        match value:
            case parts.ConsolePage():
                found.add(value.title)
                for one in (*value.parts, *value.actions):
                    walk(one)
            case parts.Table():
                found.update((value.title, value.note, value.empty.text, *(label for _, label in value.filters)))
                for one in (*value.columns, *value.actions, *value.bulk, *([value.chosen] if value.chosen else [])):
                    walk(one)
            case parts.FactList():
                found.update((value.title, value.note))
                for one in (*value.names, *value.actions):
                    walk(one)
            case parts.Drawing():
                found.update((value.title, value.note))
                for one in value.actions:
                    walk(one)
            case parts.Column():
                found.add(value.title)
            case parts.Action():
                found.update(filter(None, (value.label, value.title, value.follows, value.way_out)))
                found.update(one.label for one in value.entries)

    names = [file.name[:-3] for file in (CONSOLE / "pages").iterdir() if file.name.endswith(".py")]
    for name in sorted(set(names) - {"__init__"}):
        for page in import_module(f"ulak.console.pages.{name}").PAGES:
            walk(page)
    return found


STATES = (
    *(RunState, StepState, SyncStatus, SyncVerdict, TaskStatus, TaskType, TaskState, OfferState, HelperStatus),
    *(Status, JobEvent, Priority, ChangeType),
)


def said_as_data():
    """States and reasons as the rooms name them."""
    names = {one.name if isinstance(one, int) else one.value for states in STATES for one in states}
    names |= {*REASONS, *get_args(BreakerState), *get_args(ErrorClass)}
    names |= {"data", "error", "traceback", "stdout", "stderr"}
    return {name.lower().replace("_", " ") for name in names}


def words():
    states = {word.replace("_", " ") for word in HUES}
    found = said_in_python() | said_in_templates() | said_in_pages() | said_as_data() | states | DYNAMIC
    return {one for one in found if any(map(str.isalpha, one))}


def test_every_word_has_its_turkish():
    missing = sorted(words() - set(turkish()))
    assert missing == []


def test_turkish_keeps_every_place_for_a_value():
    places = re.compile(r"\{(\w+)\}")
    wrong = {
        text: other for text, other in turkish().items() if set(places.findall(text)) != set(places.findall(other))
    }
    assert wrong == {}
    assert [text for text, other in turkish().items() if not other.strip()] == []


COUNTED = re.compile(r"\{(?:n|held|unfinished)\} (?!is )(?:\w+ )?\w+s\b|\{n\} (?:are|were|more are) ")


def test_every_sentence_that_counts_things_has_its_singular():
    counted = {one for one in words() if COUNTED.search(one)}
    assert "{n} dead letters" in counted
    assert sorted(counted - set(singular())) == []
    assert sorted(set(singular()) - words()) == []


def test_one_thing_is_told_as_one():
    say = Say("en")
    assert say("{n} dead letters", n=1) == "1 dead letter"
    assert say("{n} dead letters", n=12) == "12 dead letters"
    assert say("Failed of the last {n} messages: {m}.", n=25, m=1) == "Failed of the last 25 messages: 1."
    assert Say("tr")("{n} dead letters", n=1) == "1 ölü mektup"


@pytest.mark.parametrize(
    ("reason", "turkish"),
    [
        (
            "companies: records would be modified by 61.8 %, more than 50 %",
            "companies: kayıtların %61,8 kadarı değişecek, sınır %50",
        ),
        ("the breaker of its destination is open", "hedefin devre kesicisi açık"),
        ("4 found", "4 kişi bulundu"),
        ("whatever somebody wrote: 3", "whatever somebody wrote: 3"),
    ],
)
def test_a_reason_of_the_api_is_told_in_turkish_where_it_is_known(reason, turkish):
    assert Say("tr").told(reason) == turkish
    assert Say("en").told(reason) == reason


def test_dates_are_written_as_people_there_write_them():
    at = datetime(2026, 12, 17, 14, 5, tzinfo=UTC)
    assert (Say("en").date(at), Say("tr").date(at)) == ("17 Dec 2026", "17 Ara 2026")


def test_a_sentence_begins_with_a_capital_letter_of_its_language():
    assert Say("tr").sentence("cancelled") == "İptal edildi"
    assert Say("en").sentence("published") == "Published"


def test_numbers_times_and_letters_are_written_as_in_turkey():
    say = Say("tr")
    assert (say.number(1204), say.number(3.25), say.percent(0.618)) == ("1.204", "3,25", "%61,8")
    assert (say.seconds(0.412), say.seconds(25.3), say.seconds(240)) == ("412 ms", "25,3 sn", "4 dk")
    assert say("Jobs") == "İşler"
    assert [Say("en").percent(share) for share in (0.618, 0.9962, 0.0021)] == ["61.8 %", "99.62 %", "0.21 %"]
    assert (say.offset(9.412), Say("en").offset(1000.5)) == ("+9,412\u00a0sn", "+1,000.500\u00a0s")


def commands_of_empty_pages():
    names = sorted(file.name[:-3] for file in (CONSOLE / "pages").iterdir() if file.name.endswith(".py"))
    pages = [page for name in names if name != "__init__" for page in _pages_of(name)]
    texts = {one.empty.command for page in pages for one in page.parts if isinstance(one, parts.Table)}
    return sorted(text for text in texts if isinstance(text, str) and text.startswith("ulak "))


def _pages_of(name):
    return import_module(f"ulak.console.pages.{name}").PAGES


@pytest.mark.parametrize("text", commands_of_empty_pages())
def test_a_command_that_fills_an_empty_page_is_one_of_ours(text):
    """Parsed as a shell and the command line would, and not run."""
    command, words = whole_command(), shlex.split(text)[1:]
    while hasattr(command, "resolve_command"):
        context = command.make_context("ulak", list(words))
        _, command, words = command.resolve_command(context, words)
    command.make_context("ulak", list(words))
