"""The life of a process that works: load the Ulak, open it, run until a signal or a loss, stop within the limits."""

from __future__ import annotations

import asyncio
import fnmatch
import gc
import importlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import typer
import uvloop

from ulak.app import Ulak
from ulak.cli import logs
from ulak.cli.haste import Haste
from ulak.cli.option import load_settings
from ulak.cli.running_server import file_of
from ulak.cli.story import with_story
from ulak.errors import Error, Misconfigured, Unavailable
from ulak.log import get_logger
from ulak.masking import mask_text, mask_url
from ulak.settings import LoadedSettings, Settings
from ulak.spine.job import Job

log = get_logger("ulak")

# New objects before each look at the youngest; Python's 700 would be a look every few requests.
COLLECT_AFTER = (20_000, 20, 50)

# For threads that are about to end by themselves, after the stop.
LAST_SECONDS = 1.0

# No mail leaves the machine, whatever the settings say.
DEMO = ("channels.email.simulated=true",)

Until = Callable[[Ulak, asyncio.Event], Awaitable[None]]


def run(
    name: str | None,
    config: Path | None,
    assignments: list[str] | None,
    until: Until,
    *,
    demo: bool = False,
    kinds: Sequence[str] | None = None,
) -> None:
    ulak = find_ulak(name, config, assignments, demo=demo)
    if demo:
        add_demo(ulak)
    if kinds:
        serve_only(ulak, kinds)
    ulak.thread_context = Haste()
    logs.set_up(ulak.settings.log)
    if ulak.settings.telemetry.traces:
        from ulak.otel import set_up_from_environment

        set_up_from_environment()
    uvloop.run(_live(ulak, until))


def serve_only(ulak: Ulak, kinds: Sequence[str]) -> None:
    """A pattern that fits nothing here is a mistake, and its jobs would wait for ever."""
    ulak.serve_only(kinds)
    assert ulak.rooms is not None  # made now, so that their handlers are known
    known = sorted(ulak.handlers.kinds())
    for pattern in kinds:
        if not fnmatch.filter(known, pattern):
            raise Misconfigured(
                f"--kinds {pattern} fits no kind that has a handler here; there are: {', '.join(known)}"
            )


def find_ulak(name: str | None, config: Path | None, assignments: list[str] | None, *, demo: bool = False) -> Ulak:
    """The user's own Ulak, or one with the settings that were given."""
    assignments = [*(assignments or []), *(DEMO if demo else ())]
    if name is None:
        loaded = load_settings(config, assignments)
        return Ulak(settings=_quiet_story(loaded) if demo else loaded.settings)
    found = _load(name)
    if isinstance(found, Ulak):
        if config is not None or assignments:
            raise Misconfigured(
                f"{name} has its settings already, so --config, --set and --demo come too late; "
                "use the environment, or name a function that takes the settings and returns a Ulak"
            )
        _check_store(name, found, load_settings(None, None))
        return found
    loaded = load_settings(config, assignments)
    made = _make(name, found, loaded.settings) if callable(found) else None
    if not isinstance(made, Ulak):
        raise Misconfigured(f"--app {name} is neither a Ulak nor a function that makes one from settings")
    _check_store(name, made, loaded)
    if demo and not made.settings.channels.email.simulated:
        raise Misconfigured(
            f"--app {name} does not use the settings that it is given, so it would send real mail in spite of --demo; "
            "make the Ulak with them, as in Ulak(settings=settings)"
        )
    return made


def _quiet_story(loaded: LoadedSettings) -> Settings:
    """The greeting stays in sight: unless somebody asks for more, only warnings are logged below it."""
    settings = with_story(loaded.settings)
    if loaded.origin("log.level") != "default":
        return settings
    return settings.model_copy(update={"log": settings.log.model_copy(update={"level": "warning"})})


def _check_store(name: str, ulak: Ulak, loaded: LoadedSettings) -> None:
    """Commands in another shell go by the settings: they must not look at one store while the app works on another."""
    origin, meant, used = loaded.origin("store"), loaded.settings.store, ulak.address
    if origin != "default" and _where(meant) != _where(used):
        raise Misconfigured(
            f"--app {name} works on {mask_url(used)}, but {origin} names the store {mask_url(meant)}; "
            "leave the address out in the app, as in Ulak(), or give both the same"
        )


def _where(address: str) -> str:
    """Return the part that two spellings of one store have in common: its file, or its server and database."""
    if (database := file_of(address)) is not None:
        return str(database.resolve())
    return address.partition("://")[2].rpartition("@")[2].partition("?")[0]


def _load(name: str) -> Any:
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise Misconfigured(f"--app {name}: write it as module:name, for example shop.jobs:ulak")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    loaded = _import(name, module)
    try:
        return getattr(loaded, attribute)
    except AttributeError as error:
        raise Misconfigured(f"--app {name}: {error}; check the name") from error


def _import(name: str, module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except Error:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise Misconfigured(f"--app {name}: no module {error.name}; start in the folder that has it") from error
        raise Misconfigured(f"--app {name}: {_place(error)}the module {error.name} is not here; install it") from error
    except SyntaxError as error:
        raise Misconfigured(f"--app {name}: {error.filename}:{error.lineno}: {error.msg}; correct it") from error
    except Exception as error:
        raise Misconfigured(f"--app {name}: {_told(error)}; correct it, or install what it needs") from error


def _make(name: str, function: Callable[..., Any], settings: Settings) -> Any:
    try:
        return function(settings)
    except Error:
        raise
    except Exception as error:
        raise Misconfigured(
            f"--app {name}: {_told(error)}; name a Ulak, or a function that takes the settings and returns a Ulak"
        ) from error


def _told(error: Exception) -> str:
    """In one line what went wrong in the user's code, and where."""
    return " ".join(f"{_place(error)}{type(error).__name__}: {error}".split())


def _place(error: Exception) -> str:
    """The line that raised it; nothing when that is ours, or of the import system."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    lines = [f"{frame.filename}:{frame.lineno}: " for frame in frames if not frame.filename.startswith("<")]
    return lines[-1] if lines else ""


def add_demo(ulak: Ulak) -> None:
    @ulak.handles("demo.greet")
    async def greet(job: Job) -> str:
        name = job.payload.get("name", "world") if isinstance(job.payload, dict) else "world"
        log.info("greeted", job=job.id)
        return f"Hello, {name}!"


async def _live(ulak: Ulak, until: Until) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, _stop_once, stop)
    threads_before = set(threading.enumerate())
    # The loop's usual pool, but ours, so that its idle threads can be sent home and only the busy ones are left.
    pool, error = ThreadPoolExecutor(thread_name_prefix="ulak-loop"), None
    loop.set_default_executor(pool)
    try:
        await until(ulak, stop)
    except Exception as raised:  # noqa: BLE001 - raised again below, unless there is no time left for that
        error = raised
    pool.shutdown(wait=False, cancel_futures=True)
    ulak.telemetry.tracer.flush(LAST_SECONDS)
    if _is_held_up(ulak, threads_before):
        _leave_at_once(error)
    if error is not None:
        raise error


def _is_held_up(ulak: Ulak, threads_before: set[threading.Thread]) -> bool:
    """The stop kept its limit. Is there a handler, a store or a thread that would keep the interpreter waiting?

    A handler that timed out long ago may still be busy on its thread, and the interpreter waits for all threads.
    """
    if ulak.stop_report is not None and (ulak.stop_report.cancelled or ulak.stop_report.stuck):
        return True
    threads = [one for one in set(threading.enumerate()) - threads_before if not one.daemon]
    give_up_at = ulak.clock.monotonic() + LAST_SECONDS
    for thread in threads:
        thread.join(max(give_up_at - ulak.clock.monotonic(), 0.0))
    return any(thread.is_alive() for thread in threads)


def _leave_at_once(error: Exception | None) -> NoReturn:
    if isinstance(error, Error):
        typer.echo(f"ulak: {mask_text(str(error))}", err=True)
    elif error is not None:
        traceback.print_exception(error)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if error is None else 1)


def _stop_once(stop: asyncio.Event) -> None:
    """The first signal stops gracefully; after it, a second has its usual effect and ends the process at once."""
    for sign in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().remove_signal_handler(sign)
        signal.signal(sign, signal.SIG_DFL)
    stop.set()


async def work_until(ulak: Ulak, stop: asyncio.Event) -> None:
    async with ulak:
        kinds = sum(map(ulak.loops.steering.serves, ulak.handlers.kinds()))
        typer.echo(
            f"Ulak works on {ulak.store.name.partition('?')[0]}: {kinds} kinds, process {os.getpid()}.", err=True
        )
        await stopped_or_lost(ulak, stop)
        failure = ulak.loops.failure
    tell_what_is_left(ulak)
    if failure is not None:
        raise Unavailable(f"the store is lost: {failure}; start again: everything that was accepted is still there")


async def stopped_or_lost(ulak: Ulak, stop: asyncio.Event) -> None:
    spare_the_collector()
    waits = [asyncio.ensure_future(event.wait()) for event in (stop, ulak.loops.failed)]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


def spare_the_collector() -> None:
    """Freeze everything loaded by now: it stays, so the garbage collector need not walk over it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def tell_what_is_left(ulak: Ulak) -> None:
    report = ulak.stop_report
    if report is not None and report.left:
        left = ", ".join(map(str, report.left[:20]))
        typer.echo(
            f"Left running after {report.seconds:.1f} s: {left}. They are uncertain and run again at the next start.",
            err=True,
        )
