"""Values as cells, states as words with their shape, actions as buttons."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import msgspec
from markupsafe import Markup

from ulak.console import format as forms
from ulak.console.page import Action, Column, Found, field_of
from ulak.console.words import Say

NOTHING = Markup('<span class="soft">–</span>')
_NAMES = re.compile(r"\{([A-Za-z_][A-Za-z_.]*)\}")
_MASKED = re.compile(r"([^\s\"]*\*\*\*[^\s\"]*|\[[0-9,.]+ characters?, mark [0-9a-f]+\])")
_COUNTED = re.compile(r"\[([0-9,]+) characters?, mark ([0-9a-f]+)\]")
MAX_JSON = 100  # characters of JSON in a cell; more of it opens by a click


def icon(name: str) -> Markup:
    return Markup('<svg class="icon" aria-hidden="true"><use href="#i-{}"/></svg>').format(name)


def state(value: Any, found: Found, *, loud: bool = False) -> Markup:
    name = forms.hue(value)
    text = found.say(str(value).lower().replace("_", " "))
    return Markup('<span class="state s-{}{}">{}{}</span>').format(name, " loud" if loud else "", icon(name), text)


def time(value: Any, found: Found) -> Markup:
    at = forms.instant(value)
    if at is None:
        return Markup("{}").format(value)
    exact = at.astimezone(found.zone) if at.tzinfo else at
    return Markup('<time datetime="{}" title="{} {:%H:%M:%S} {}">{}</time>').format(
        at.isoformat(), found.say.date(exact), exact, found.zone, forms.ago(at, found.now, found.zone, found.say)
    )


def clock(value: Any, found: Found) -> Markup:
    """A moment of a timeline: the time of day to the millisecond."""
    at = forms.instant(value)
    if at is None:
        return Markup("{}").format(value)
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(
        at.isoformat(), forms.clock_time(at, found.zone)
    )


def told(detail: dict[str, Any], found: Found) -> Markup:
    """A step's detail as a sentence: its code, its reason, until when; what else there is stays JSON."""
    rest = dict(detail)
    code, reason, until = (
        rest.pop("code", None),
        rest.pop("reason", None) or rest.pop("cause", None),
        rest.pop("until", None),
    )
    parts = [Markup("<code>{}</code>").format(code)] if code else []
    sentence = found.say.told(str(reason or ""))
    parts += [masked(sentence.removesuffix(".") if until or rest else sentence, found.say)] if sentence else []
    parts += [Markup.escape(found.say("until {time}", time="")) + clock(until, found)] if until else []
    parts += [shown("json", rest, found)] if rest else []
    return Markup("<div>{}</div>").format(Markup("; ").join(parts))


def masked(text: str, say: Say) -> Markup:
    """Text in which everything that is masked stands on its own ground."""
    pieces = _MASKED.split(text)
    return Markup("").join(
        Markup('<span class="masked">{}</span>').format(_mask(piece, say)) if place % 2 else Markup.escape(piece)
        for place, piece in enumerate(pieces)
    )


def _mask(piece: str, say: Say) -> str:
    found = _COUNTED.fullmatch(piece)
    return say("[{n} characters, mark {mark}]", n=int(found[1].replace(",", "")), mark=found[2]) if found else piece


def document(value: Any, say: Say) -> Markup:
    """JSON for people, masks marked."""
    return masked(msgspec.json.format(msgspec.json.encode(value), indent=2).decode(), say)


def _json(value: Any, say: Say) -> Markup:
    """JSON on one line; a long one is cut off there and opens to the whole."""
    if isinstance(value, str):
        return masked(value, say)
    text = msgspec.json.encode(value).decode()
    line = Markup('<code class="json">{}</code>').format(
        masked(text if len(text) <= MAX_JSON else text[:MAX_JSON] + "…", say)
    )
    if len(text) <= MAX_JSON:
        return line
    return Markup("<details><summary>{}</summary><pre>{}</pre></details>").format(line, document(value, say))


def shown(form: str, value: Any, found: Found) -> Any:
    if value is None or value in ("", [], {}):
        return NOTHING
    say = found.say
    match form:
        case "time":
            return time(value, found)
        case "number" if isinstance(value, int | float):
            return say.number(value)
        case "percent" if isinstance(value, int | float):
            return say.percent(value)
        case "seconds" if isinstance(value, int | float):
            return say.seconds(value)
        case "state":
            return state(value, found)
        case "code" | "id":
            return Markup("<code>{}</code>").format(masked(str(value), say))
        case "clock":
            return clock(value, found)
        case "told" if isinstance(value, dict):
            return told(value, found)
        case "soft":
            return Markup('<span class="soft">{}</span>').format(value)
        case "json":
            return _json(value, say)
        case "yes":
            return say("yes" if value else "no")
        case _ if isinstance(value, Markup):
            return value
        case _:
            return masked(", ".join(map(str, value)) if isinstance(value, list) else str(value), say)


def cell(column: Column, item: Any, found: Found) -> dict[str, Any]:
    value = column.name(item, found) if callable(column.name) else field_of(item, column.name)
    html = shown(column.form, value, found)
    if column.link is not None and value is not None:
        place = filled(column.link.replace("{}", quote(str(value), safe="")), item, encode=True)
        html = Markup('<a class="{}" href="/console/{}">{}</a>').format(
            "id" if column.form in {"id", "code"} else "", place, html if column.form != "id" else value
        )
    return {"title": column.title, "html": html, "numeric": column.form in {"number", "percent", "seconds"}}


def filled(text: str, item: Any, *, encode: bool, say: Say | None = None) -> str:
    """`{field}` of the item in its place; a name that the item has not stays as it is."""

    def put(match: re.Match[str]) -> str:
        value = field_of(item, match[1])
        if value is None:
            return match[0]
        if say is not None and isinstance(value, int):
            return say.number(value)
        return quote(str(value), safe="") if encode else str(value)

    return _NAMES.sub(put, text)


def button(action: Action, item: Any, found: Found) -> dict[str, Any]:
    say = found.say

    def text(words: str) -> str:
        values = {name: field_of(item, name) for name in _NAMES.findall(words)}
        return filled(say.text(words, values), item, encode=False, say=say)

    body = action.body
    return {
        "label": text(action.label),
        "method": action.method,
        "path": filled(action.path, item, encode=True),
        "body": "" if body is None else filled_json(body, item),
        "title": text(action.title or action.label),
        "title_of_one": say.text(action.title, {"n": 1}) if "{n}" in action.title else "",
        "follows": text(action.follows) if action.follows else "",
        "way_out": say(action.way_out),
        "style": "risk" if action.risk else "go" if action.go else "",
        "dry": action.dry,
        "shows": action.shows,
        "entries": [
            {
                "name": one.name,
                "label": say(one.label),
                "value": filled(one.value, item, encode=False),
                "form": one.form,
            }
            for one in action.entries
        ],
    }


def filled_json(body: str, item: Any) -> str:
    """A body whose texts are fields of the item: `{"id": "{id}"}`."""

    def put(value: Any) -> Any:
        if isinstance(value, str):
            return filled(value, item, encode=False)
        if isinstance(value, list):
            return [put(one) for one in value]
        return {name: put(one) for name, one in value.items()} if isinstance(value, dict) else value

    return msgspec.json.encode(put(msgspec.json.decode(body))).decode()
