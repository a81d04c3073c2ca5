"""Every word of the console has its Turkish, and every Turkish word is used."""

from __future__ import annotations

import ast
import re
from importlib import import_module, resources

from ulak.console import page as parts
from ulak.console.format import HUES
from ulak.console.words import Say, turkish

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


def words():
    states = {word.replace("_", " ") for word in HUES}
    found = said_in_python() | said_in_templates() | said_in_pages() | states | DYNAMIC
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


def test_numbers_times_and_letters_are_written_as_in_turkey():
    say = Say("tr")
    assert (say.number(1204), say.number(3.25), say.percent(0.618)) == ("1.204", "3,25", "%61,8")
    assert (say.seconds(0.412), say.seconds(25.3), say.seconds(240)) == ("412 ms", "25,3 sn", "4 dk")
    assert say("Jobs") == "İşler"
    assert Say("en").percent(0.618) == "61.8 %"
