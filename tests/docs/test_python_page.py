"""The reference of the Python API is complete, and its signatures are those of the code."""

from __future__ import annotations

import enum
import inspect
import re
from pathlib import Path

import pytest

import ulak
import ulak.compute
import ulak.errors
import ulak.testing
from ulak.compute.service import Compute
from ulak.notify.endpoint import Endpoints
from ulak.notify.service import Notify
from ulak.spine.dead_letters import Filter
from ulak.spine.jobs import Jobs

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
    "ulak.notify.endpoints",
}
# Public to the doors and to the composition root, not to a user.
INNER = {
    "ulak.notify.accept", "ulak.notify.accept_batch", "ulak.notify.page", "ulak.notify.endpoints.find",
    "ulak.notify.endpoints.secrets", "ulak.compute.close", "ulak.compute.gauges", "ulak.compute.places",
}  # fmt: skip
PLAIN = {
    **{name: getattr(ulak, name) for name in ulak.__all__},
    **{name: getattr(ulak.testing, name) for name in ulak.testing.__all__},
    **{name: getattr(ulak.errors, name) for name in ("Failure", "Held", "TooLarge")},
    "Filter": Filter,
}


def members():
    for owner, kind in OWNERS.items():
        yield from (f"{owner}.{name}" for name in vars(kind) if not name.startswith("_"))


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


@pytest.mark.parametrize("name", sorted(({*PLAIN} | set(members()) | ATTRIBUTES) - INNER))
def test_every_public_name_is_on_the_page(name):
    assert name in DOCUMENTED


@pytest.mark.parametrize("name", sorted(set(DOCUMENTED) - ATTRIBUTES))
def test_every_name_on_the_page_exists_as_it_is_written(name):
    found = find(name)
    assert found is not None
    if DOCUMENTED[name]:
        assert DOCUMENTED[name] == shown(found)
    else:
        assert not inspect.isfunction(found)


@pytest.mark.parametrize("name", ulak.compute.__all__)
def test_every_public_name_of_compute_is_on_the_page(name):
    assert f"`{name}`" in PAGE
