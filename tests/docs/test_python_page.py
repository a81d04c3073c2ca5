"""The reference of the Python API is complete, and its signatures are those of the code."""

from __future__ import annotations

import enum
import inspect
import re
from pathlib import Path

import ulak
import ulak.compute
import ulak.errors
import ulak.testing
from ulak.actions.directory.verbs import Directory
from ulak.actions.plans.verbs import Plans
from ulak.actions.service import Actions
from ulak.changes.service import Changes
from ulak.channels.endpoint import Endpoints
from ulak.compute.service import Compute
from ulak.dispatch.service import Dispatch
from ulak.notify.service import Notify
from ulak.spine.jobs import Jobs
from ulak.spine.units.dead_letters import Filter

PAGE = (Path(__file__).parents[2] / "docs/reference/python.md").read_text(encoding="utf-8")
# A row of a table that begins with a name: `ulak.enqueue(kind, …)`, `Done(result=None)`, `job.payload`.
ROW = re.compile(r"^\| `([A-Za-z_.]+)(\(.*?\))?` \|", re.MULTILINE)
DOCUMENTED = dict(ROW.findall(PAGE))

# What stands before the dot on the page, and what it is.
OWNERS = {
    "ulak": ulak.Ulak,
    "ulak.jobs": Jobs,
    "ulak.notify": Notify,
    "ulak.notify.endpoints": Endpoints,
    "ulak.compute": Compute,
    "ulak.actions": Actions,
    "ulak.actions.directory": Directory,
    "ulak.actions.plans": Plans,
    "ulak.dispatch": Dispatch,
    "ulak.changes": Changes,
    "blocking": ulak.BlockingUlak,
    "job": ulak.Job,
}
# Set when an Ulak is made, so its class does not know them.
ATTRIBUTES = {
    "ulak.address",
    "ulak.clock",
    "ulak.handlers",
    "ulak.settings",
    "ulak.stop_report",
    "ulak.telemetry",
    "ulak.actions.directory",
    "ulak.actions.plans",
}
# Public to the doors and to the composition root, not to a user.
INNER = {
    "ulak.notify.accept", "ulak.notify.accept_batch", "ulak.notify.page", "ulak.notify.endpoints.find",
    "ulak.channels", "ulak.rooms", "ulak.sample", "ulak.sampler", "ulak.redriver", "ulak.notify.post",
    "ulak.compute.run", "ulak.actions.start", "ulak.actions.link", "ulak.actions.run_of_link",
    "ulak.actions.start_redrive", "ulak.actions.close",
    "ulak.notify.check_message", "ulak.dispatch.pull", "ulak.dispatch.flush_positions",
    "ulak.notify.endpoints.secrets", "ulak.compute.close", "ulak.compute.gauges", "ulak.compute.places",
    "ulak.changes.inbox",
}  # fmt: skip
PLAIN = {
    **{name: getattr(ulak, name) for name in ulak.__all__},
    **{name: getattr(ulak.testing, name) for name in ulak.testing.__all__},
    **{name: getattr(ulak.errors, name) for name in ("Failure", "Held", "TooLarge")},
    "Filter": Filter,
}


def members():
    for owner, kind in OWNERS.items():
        yield from (f"{owner}.{name}" for base in kind.__mro__[:-1] for name in vars(base) if name[:1] != "_")


def shown(call) -> str:
    """A signature without types, as the page writes it."""
    found, starred = [], False
    for parameter in inspect.signature(call).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            found.append("*")
        starred = starred or parameter.kind in {parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL}
        mark = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        found.append(mark + parameter.name + _default(parameter.default))
    return f"({', '.join(found)})"


def _default(value) -> str:
    if value is inspect.Parameter.empty:
        return ""
    if isinstance(value, enum.Enum):
        return f"={value.name}"
    return "=…" if value is ... else f"={value!r}"


def find(name: str):
    """What a name on the page stands for; None when there is no such thing."""
    owner, _, last = name.rpartition(".")
    return PLAIN.get(name) if not owner else getattr(OWNERS.get(owner), last, None)


def test_every_public_name_is_on_the_page():
    assert sorted(({*PLAIN} | set(members()) | ATTRIBUTES) - INNER - set(DOCUMENTED)) == []


def test_every_name_on_the_page_exists_as_it_is_written():
    wrong = {}
    for name in sorted(set(DOCUMENTED) - ATTRIBUTES):
        found = find(name)
        if found is None:
            wrong[name] = "is not there"
        elif DOCUMENTED[name] != (shown(found) if DOCUMENTED[name] else "") or (
            not DOCUMENTED[name] and inspect.isfunction(found)
        ):
            wrong[name] = shown(found)
    assert wrong == {}


def test_every_public_name_of_compute_is_on_the_page():
    assert [name for name in ulak.compute.__all__ if f"`{name}`" not in PAGE] == []
