"""`ulak compute`: run a script here and now, over many items, or durably; and watch the engine."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.progress import track
from rich.table import Table

from ulak.cli.command import Api, Shown, asks, lines, segment, table
from ulak.compute import Engine, Result, Task, TaskType
from ulak.errors import Invalid

compute = typer.Typer(help="Run scripts on worker processes.", no_args_is_help=True)

Script = Annotated[Path, typer.Argument(metavar="SCRIPT", exists=True, dir_okay=False)]
Parameters = Annotated[
    list[str] | None, typer.Option("--param", metavar="NAME=VALUE", help="JSON or text; repeatable.")
]
Cpu = Annotated[bool, typer.Option("--cpu", help="CPU-bound: one task at a time per process.")]
Timeout = Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", help="End a run that takes longer.")]
Retries = Annotated[int, typer.Option("--retries", help="Further attempts after a failure.")]


def register(app: typer.Typer) -> None:
    app.add_typer(compute, name="compute")


@compute.command()
def run(
    script: Script, param: Parameters = None, cpu: Cpu = False, timeout: Timeout = None, retries: Retries = 0
) -> None:
    """Run a script once, here. Its output goes to stderr, its result as JSON to stdout; nothing is stored."""
    task = _task(script.name, _parameters(param), cpu, timeout, retries)
    with Engine(script_root=str(script.parent.resolve())) as engine:
        result = engine.get_result(engine.submit_task(task))
    sys.stderr.write(result.stdout + result.stderr)
    _print(result)
    raise typer.Exit(0 if result.is_success else 1)


@compute.command("map")
def map_(
    script: Script,
    items: Annotated[
        typer.FileText, typer.Argument(metavar="ITEMS", help="A JSON object of parameters per line; - is stdin.")
    ],
    cpu: Cpu = False,
    timeout: Timeout = None,
    retries: Retries = 0,
) -> None:
    """Run a script once per line of ITEMS on all workers; prints a result per line, in the order of the items."""
    tasks = [_task(script.name, item, cpu, timeout, retries) for item in _read_items(items)]
    failures = 0
    with Engine(script_root=str(script.parent.resolve())) as engine:
        identifiers = engine.submit_tasks(tasks)
        for identifier in track(identifiers, "tasks", console=Console(stderr=True)):
            result = engine.get_result(identifier)
            failures += not result.is_success
            _print(result)
    raise typer.Exit(1 if failures else 0)


@asks(compute, may_make=True)
async def submit(
    api: Api,
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="Path below compute.script_root.")],
    param: Parameters = None,
    cpu: Cpu = False,
    timeout_seconds: Timeout = None,
    retries: Retries = 3,
    wait: Annotated[float, typer.Option("--wait", metavar="SECONDS", help="Wait for the result.")] = 0.0,
) -> Shown:
    """Accept a durable task: it survives a restart and is run by the server or a worker."""
    body = _task(script, _parameters(param), cpu, timeout_seconds, retries).to_dict()
    task = await api.ask("POST", "/api/compute/tasks", body=body)
    if wait:
        task = await api.ask("GET", f"/api/compute/tasks/{task['task_id']}/result", {"wait": wait})
    return task, lines(json.dumps(task, ensure_ascii=False))


@asks(compute, "list")
async def list_(
    api: Api,
    after: Annotated[str | None, typer.Option(help="`next` of the page above.")] = None,
    limit: Annotated[int, typer.Option(help="Most rows.")] = 50,
) -> Shown:
    """Durable tasks, newest first."""
    page = await api.ask("GET", "/api/compute/tasks", {"after": after, "limit": limit})
    return page, table(page["items"], "task_id", "status", "task_type", "attempts", "script_path", "accepted_at")


@asks(compute)
async def result(api: Api, identifier: Annotated[str, typer.Argument(metavar="ID")]) -> Shown:
    """How a durable task ended, or where it stands."""
    found = await api.ask("GET", f"/api/compute/tasks/{segment(identifier)}/result")
    return found, lines(json.dumps(found, ensure_ascii=False))


@asks(compute)
async def cancel(api: Api, identifier: Annotated[str, typer.Argument(metavar="ID")]) -> Shown:
    """Cancel a durable task, also while it runs."""
    found = await api.ask("POST", f"/api/compute/tasks/{segment(identifier)}/cancel")
    return found, table([found], "task_id", "status")


@asks(compute)
async def stats(
    api: Api,
    watch: Annotated[int, typer.Option("--watch", metavar="SECONDS", help="Refresh every second for so long.")] = 0,
) -> Shown:
    """Load per worker, queue depth per class, wait and run times, restarts and retries."""
    found = await api.ask("GET", "/api/compute/stats")
    if not watch:
        return found, lambda: Console().print(_drawn(found))
    with Live(_drawn(found), console=Console()) as live:
        for _ in range(watch):
            await asyncio.sleep(1)
            found = await api.ask("GET", "/api/compute/stats")
            live.update(_drawn(found))
    return found, lambda: None


def _drawn(stats: dict[str, Any]) -> Group | str:
    """A line per worker, then what queue and pool have counted."""
    if not stats:
        return "The engine has not been needed yet. It starts with the first task: ulak compute submit SCRIPT"
    metrics = stats["metrics"]
    workers = Table("worker", "status", "running", "in flight", "done", box=None, pad_edge=False)
    for name, worker in metrics["workers"].items():
        workers.add_row(
            name, worker["status"], *(str(worker[key]) for key in ("active_count", "in_flight", "total_done"))
        )
    queue, pool = dict(metrics["input_queue"]), metrics["process_pool"]
    waiting = {f"waiting {kind}": depth for kind, depth in queue.pop("depth").items()}
    counts = Table.grid(padding=(0, 2))
    for name, value in {**waiting, **queue, **pool}.items():
        counts.add_row(name.replace("_", " "), f"{value:.3f}" if isinstance(value, float) else str(value))
    return Group(workers, "", counts)


def _type(cpu: bool) -> TaskType:
    return TaskType.CPU_BOUND if cpu else TaskType.IO_BOUND


def _task(script: str, params: dict[str, Any], cpu: bool, timeout: float | None, retries: int) -> Task:
    return Task.create(script, params, _type(cpu), retries, timeout_seconds=timeout)


def _parameters(given: list[str] | None) -> dict[str, Any]:
    pairs = [text.partition("=") for text in given or []]
    wrong = [name for name, equals, _ in pairs if not equals or not name]
    if wrong:
        raise Invalid(f"--param {wrong[0]!r} is not NAME=VALUE")
    return {name: _value(text) for name, _, text in pairs}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _read_items(items: IO[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(items, 1):
        if not line.strip():
            continue
        item = _value(line)
        if not isinstance(item, dict):
            raise Invalid(f"line {number} of the items is not a JSON object")
        yield item


def _print(result: Result) -> None:
    """As JSON; a value that JSON can't hold as Python writes it."""
    fields = result.to_dict()
    try:
        text = json.dumps(fields, ensure_ascii=False, allow_nan=False, default=repr)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(fields | {"data": repr(result.data)}, ensure_ascii=False)
    typer.echo(text.encode("utf-8", "backslashreplace"))  # half of a letter becomes the escape that JSON has for it
