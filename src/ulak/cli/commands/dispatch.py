"""`ulak dispatch`: helpers, tasks and answers; why an offer went where it went; what another policy would do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer

from ulak.cli.command import Api, AsJson, Shown, asks, lines, segment, table
from ulak.cli.option import Assignments, ConfigFile, load_settings
from ulak.cli.table import fact, local
from ulak.errors import Invalid

dispatch = typer.Typer(help="Offer tasks to nearby helpers, one after another.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="ID")]
Who = Annotated[str, typer.Argument(metavar="HELPER", help="The helper who answers.")]
HELPER_COLUMNS = ("id", "name", "status", "completedThisMonth", "timeoutsInRow", "latitude", "longitude", "positionAt")
TASK_COLUMNS = ("id", "status", "category", "requesterId", "helperId", "createdAt", "endedAt")


def register(app: typer.Typer) -> None:
    app.add_typer(dispatch, name="dispatch")


@asks(dispatch)
async def helpers(
    api: Api,
    status: Annotated[str | None, typer.Option(help="IDLE, OFFERED, BUSY, PAUSED or INACTIVE.")] = None,
    bbox: Annotated[str | None, typer.Option(help="west,south,east,north in degrees.")] = None,
    after: Annotated[str | None, typer.Option(help="The next page: after this id.")] = None,
    limit: Annotated[int, typer.Option(help="Most rows.")] = 50,
) -> Shown:
    """Helpers, by id."""
    page = await api.ask("GET", "/helpers", {"status": status, "bbox": bbox, "after": after, "limit": limit})
    return page, table(page["items"], *HELPER_COLUMNS, empty="No helpers. PUT /helpers/ID adds one.")


@asks(dispatch, "open", may_make=True)
async def open_task(
    api: Api,
    category: Annotated[str, typer.Argument(help="What is needed.")],
    latitude: Annotated[float, typer.Option(help="Where, in degrees.")],
    longitude: Annotated[float, typer.Option(help="Where, in degrees.")],
    requester: Annotated[str, typer.Option(help="Who asks.")] = "cli",
    radius: Annotated[float | None, typer.Option(help="Metres around the place.")] = None,
    deadline: Annotated[float | None, typer.Option(help="Seconds that an offer stands.")] = None,
    width: Annotated[int | None, typer.Option(help="How many are asked at once.")] = None,
    skill: Annotated[list[str] | None, typer.Option(help="A skill that is needed; repeatable.")] = None,
    description: Annotated[str | None, typer.Option(help="What the helper reads.")] = None,
) -> Shown:
    """Open a task; prints whom it was offered to."""
    given = {
        "requesterId": requester, "category": category, "latitude": latitude, "longitude": longitude,
        "radiusMeters": radius, "deadlineSeconds": deadline, "width": width, "skills": skill or None,
        "description": description,
    }  # fmt: skip
    request = {name: value for name, value in given.items() if value is not None}
    made = await api.ask("POST", "/tasks", body=request)
    return made, lines(_state(made))


@asks(dispatch)
async def show(api: Api, identifier: Id) -> Shown:
    """One task with its timeline."""
    found = await api.ask("GET", f"/tasks/{segment(identifier)}")
    facts = [f"{name}: {fact(value)}" for name, value in found.items() if name != "timeline" and value is not None]
    steps = [_step(one) for one in found["timeline"]]
    return found, lines(*facts, "timeline:", *steps)


@asks(dispatch, "list")
async def list_(
    api: Api,
    status: Annotated[str | None, typer.Option(help="Only this status, for example OFFERED.")] = None,
    helper: Annotated[str | None, typer.Option(help="Only this helper's tasks.")] = None,
    requester: Annotated[str | None, typer.Option(help="Only this requester's tasks.")] = None,
    after: Annotated[str | None, typer.Option(help="The next page: after this id.")] = None,
    limit: Annotated[int, typer.Option(help="Most rows.")] = 50,
) -> Shown:
    """Tasks, newest first."""
    query = {"status": status, "helperId": helper, "requesterId": requester, "after": after, "limit": limit}
    page = await api.ask("GET", "/tasks", query)
    return page, table(page["items"], *TASK_COLUMNS, empty="No tasks fit. Open one: ulak dispatch open")


@asks(dispatch)
async def accept(api: Api, identifier: Id, helper: Who) -> Shown:
    """Answer an offer with yes."""
    return await _answered(api, identifier, "accept", {"helperId": helper})


@asks(dispatch)
async def reject(api: Api, identifier: Id, helper: Who) -> Shown:
    """Answer an offer with no; the next is asked at once."""
    return await _answered(api, identifier, "reject", {"helperId": helper})


@asks(dispatch)
async def cancel(
    api: Api, identifier: Id, reason: Annotated[str | None, typer.Option(help="Why; kept with the task.")] = None
) -> Shown:
    """End a task that needs no help any more."""
    return await _answered(api, identifier, "cancel", {} if reason is None else {"reason": reason})


async def _answered(api: Api, identifier: str, verb: str, body: dict[str, Any]) -> Shown:
    found = await api.ask("PUT", f"/tasks/{segment(identifier)}/{verb}", body=body)
    return found, lines(_state(found))


@asks(dispatch)
async def explain(api: Api, identifier: Id) -> Shown:
    """Per search: who was ranked where, and who was left out for which reason."""
    found = await api.ask("GET", f"/tasks/{segment(identifier)}/explain")
    told = [line for one in found["searches"] for line in _search(one)]
    return found, lines(*told)


@asks(dispatch)
async def fairness(api: Api) -> Shown:
    """How evenly work is shared, and how long people wait."""
    found = await api.ask("GET", "/api/dispatch/fairness")
    return found, lines(*(f"{name}: {fact(value)}" for name, value in found.items()))


def _state(task: dict[str, Any]) -> str:
    offered = ", ".join(one["helperId"] for one in task["pendingAssignments"])
    told = task["helperId"] or (f"offered to {offered}" if offered else "")
    return f"{task['id']}  {task['status']}  {told}".rstrip()


def _step(step: dict[str, Any]) -> str:
    details = [step[name] for name in ("helperId", "reason") if step[name] is not None]
    return f"  {local(step['at'])}  {step['what']}  {'  '.join(details)}".rstrip()


def _search(search: dict[str, Any]) -> list[str]:
    ranked = [
        f"  {one['place']}. {one['helperId']}  {one['distanceMeters']:.0f} m  {one['completedThisMonth']} this month"
        f"  {one['timeoutsInRow']} timeouts  ({one['reason']})"
        for one in search["ranked"]
    ]
    left_out = [f"  not {one['helperId']}: {one['reason']}" for one in search["excluded"]]
    head = (
        f"search {search['search']} at {local(search['at'])}, {search['radiusMeters']:.0f} m: {search['found']} found"
    )
    return [head, *ranked, *left_out]


@dispatch.command()
def simulate(
    helpers: Annotated[int, typer.Option(min=1, max=10_000, help="How many there are.")] = 20,
    requests: Annotated[int, typer.Option(min=1, max=100_000, help="How many tasks come.")] = 300,
    silent: Annotated[float, typer.Option(min=0, max=1, help="Share of helpers who never answer.")] = 0.3,
    seed: Annotated[int, typer.Option(help="The same seed tells the same story.")] = 1,
    recorded: Annotated[bool, typer.Option("--recorded", help="Use the tasks and helpers of the store.")] = False,
    plot: Annotated[bool, typer.Option("--plot", help="Draw the waiting times in the terminal.")] = False,
    png: Annotated[Path | None, typer.Option(help="Draw them into this file; needs the extra plot.")] = None,
    as_json: AsJson = False,
    config: ConfigFile = None,
    assignments: Assignments = None,
) -> None:
    """Simulate policies by the room's own decisions on a virtual clock. Nothing is stored."""
    from ulak.cli import dispatch_simulation

    town = asyncio.run(dispatch_simulation.recorded(load_settings(config, assignments).settings)) if recorded else None
    outcomes = dispatch_simulation.run(helpers, requests, silent, seed, town)
    if not outcomes[0].seconds and recorded:
        raise Invalid("no recorded task could be assigned; open some tasks first, or leave --recorded out")
    if png is not None:
        dispatch_simulation.draw_png(outcomes, png)
    if as_json:
        typer.echo(dispatch_simulation.as_json(outcomes))
        return
    dispatch_simulation.print_table(outcomes)
    if plot:
        dispatch_simulation.print_plot(outcomes)


@dispatch.command()
def demo(
    helpers: Annotated[int, typer.Option(min=1, max=500, help="How many live in the town.")] = 20,
    speed: Annotated[float, typer.Option(min=1, max=3600, help="Seconds of the town for each of yours.")] = 60,
    minutes: Annotated[
        float, typer.Option(min=1, max=1440, help="How long the town is watched, in its own time.")
    ] = 60,
    seed: Annotated[int, typer.Option(help="The same seed tells the same story.")] = 1,
) -> None:
    """A town to watch: helpers walk about, tasks come, offers are answered or expire. Nothing is stored."""
    from ulak.cli.dispatch_demo import run_town

    asyncio.run(run_town(helpers, speed, minutes, seed))
