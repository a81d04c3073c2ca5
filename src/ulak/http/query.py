"""Query parameters: a key that a route does not know is refused, since a filter that is not
applied shows more, or cancels more, than was asked for."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi.dependencies.models import Dependant

from ulak.errors import Invalid
from ulak.http.guard import PROBES


def check_query(asked: Iterable[str], known: Iterable[str]) -> None:
    names = sorted(known)
    there = f"there are: {', '.join(names)}" if names else "this route has none"
    fields = [(name, f"is not known in the query; {there}") for name in dict.fromkeys(asked) if name not in names]
    if fields:
        raise Invalid(f"the query is not as expected: {' '.join(fields[0])}", fields=fields)


def keys_of(query: bytes) -> list[str]:
    return [name for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True)]


async def only_known_keys(request: Request) -> None:
    """A dependency of every route. A probe is answered whatever a balancer adds to it; a page reads its own filters."""
    path = request.url.path
    if request.query_params and path not in PROBES and not path.startswith("/console/"):
        check_query(request.query_params, _known(request.scope["route"].dependant))
        _check_texts(request.query_params.multi_items())


def _check_texts(asked: Iterable[tuple[str, str]]) -> None:
    """No text that a store keeps has a NUL, and one of them would refuse to look for it."""
    fields = [(name, "must have no NUL") for name, value in asked if "\x00" in value]
    if fields:
        raise Invalid(f"the query is not as expected: {' '.join(fields[0])}", fields=fields)


def _known(dependant: Dependant) -> set[str]:
    known = {parameter.alias for parameter in dependant.query_params}
    return known.union(*map(_known, dependant.dependencies))
