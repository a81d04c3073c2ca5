"""Commands that ask: they share the options that say whom, and get the API. `--json` prints what that answered."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import wraps
from typing import Annotated, Any, Protocol
from urllib.parse import quote

import msgspec
import typer

from ulak.cli import logs
from ulak.cli.option import Assignments, ConfigFile, load_settings
from ulak.cli.running_server import elsewhere
from ulak.cli.table import table as table  # noqa: PLC0414 - commands take it from here
from ulak.errors import Error, Invalid
from ulak.settings import Settings

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_SHARED = {"as_json": (AsJson, False), "config": (ConfigFile, None), "assignments": (Assignments, None)}


def segment(given: str, *, slashes: bool = False) -> str:
    """A word from the command line as one part of a path. An id has no slash; a name that people give may have one."""
    if given in {"", ".", ".."} or ("/" in given and not slashes):
        raise Invalid(f"{given!r:.100} is not an id; `list` shows which there are")
    return quote(given, safe="", errors="surrogateescape")


async def each(identifiers: list[str], ask: Callable[[str], Awaitable[Any]]) -> list[Any]:
    """Ask for every one, whatever becomes of the others; those it failed for are named at the end."""
    if len(identifiers) == 1:
        return [await ask(identifiers[0])]
    answers, failed = [], []
    for identifier in identifiers:
        try:
            answers.append(await ask(identifier))
        except Error as error:
            failed.append(f"{identifier}: {error}")
    if failed:
        raise Invalid(f"done for {len(answers)} of {len(identifiers)}, but not for {'; '.join(failed)}")
    return answers


class Api(Protocol):
    """The other side of a command: a server, or the store in this process. `place` names it."""

    place: str
    is_served: bool

    async def ask(self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = ...) -> Any: ...


# An answer as JSON, and how to show it to people.
Shown = tuple[Any, Callable[[], None]]


def asks(
    group: typer.Typer,
    name: str | None = None,
    *,
    may_make: bool = False,
    works: Sequence[str] = (),
    exit_status: Callable[[Any], int] = lambda _: 0,
) -> Callable[[Callable[..., Awaitable[Shown]]], None]:
    """Add `async def command(api, …)` to a group. It answers what `--json` prints, and what prints it for people.

    A command that adds something may make the store; any other has nothing to do without one. Where no server is at
    work, `works` names the kinds of jobs that the command runs itself while it waits for them (`actions.*`).
    `exit_status` says by the answer how the command ends.
    """

    def add(call: Callable[..., Awaitable[Shown]]) -> None:
        own = list(inspect.signature(call, eval_str=True).parameters.values())[1:]

        @wraps(call)
        def run(*, as_json: bool, config: Any, assignments: Any, **given: Any) -> None:
            settings = load_settings(config, assignments).settings
            logs.set_up_quietly(settings.log)
            (answer, show), note = asyncio.run(_ask(settings, call, given, may_make=may_make, works=works))
            if as_json:
                typer.echo(msgspec.json.format(msgspec.json.encode(answer)).decode())
            else:
                show()
                if note:
                    typer.echo(note, err=True)
            raise typer.Exit(exit_status(answer))

        shared = [
            inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for option, (kind, default) in _SHARED.items()
        ]
        keyword = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
        # typer looks at the signature, and at the annotations of the function that it calls.
        del run.__wrapped__
        run.__signature__ = inspect.Signature([*keyword, *shared])  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*keyword, *shared]}
        group.command(name)(run)

    return add


async def _ask(
    settings: Settings,
    call: Callable[..., Awaitable[Shown]],
    given: dict[str, Any],
    *,
    may_make: bool,
    works: Sequence[str],
) -> tuple[Shown, str]:
    from ulak.cli.api_client import open_api  # the HTTP stack takes a while to load

    async with open_api(settings, may_make=may_make, works=works) as api:
        return await call(api, **given), "" if api.is_served else _note(api.place, settings.store)


def _note(place: str, store: str) -> str:
    """Which store was read: it may not be the one that was meant."""
    if store.startswith("postgres"):  # where servers are not known to a command
        return f"({place}; asked directly, not through a server)"
    hint = elsewhere(store)
    return f"({place}; no server works on it{'.' if hint else ''}{hint})"


def lines(*texts: str) -> Callable[[], None]:
    def show() -> None:
        for text in texts:
            typer.echo(text)

    return show
