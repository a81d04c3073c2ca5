"""`ulak actions`: ask for runs and see what became of them, keep the directory and the plans, mend what died."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
import yaml

from ulak.cli.command import Api, Shown, asks, each, lines, segment, table
from ulak.cli.table import fact, local
from ulak.errors import Invalid

actions = typer.Typer(help="Run action plans and see whom they reached.", no_args_is_help=True)
plans = typer.Typer(help="Plans and their versions; as YAML too.", no_args_is_help=True)
profiles = typer.Typer(help="Recipient profiles: whom plans reach.", no_args_is_help=True)
channels = typer.Typer(help="Recipient channels: the ways to reach a profile.", no_args_is_help=True)
routes = typer.Typer(help="Routes: which profile a plan's step is for.", no_args_is_help=True)
dead = typer.Typer(help="Dead letters of action plans: look, mend, send again.", no_args_is_help=True)
_GROUPS = {"plans": plans, "profiles": profiles, "channels": channels, "routes": routes, "dead": dead}
for _name, _group in _GROUPS.items():
    actions.add_typer(_group, name=_name)

Run = Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")]
Number = Annotated[int, typer.Argument(metavar="ID")]
After = Annotated[str | None, typer.Option(help="`next` of the page above.")]
Limit = Annotated[int, typer.Option(help="Most rows.")]
Document = Annotated[str, typer.Argument(metavar="JSON", help="A JSON object, or @FILE.")]
RUN_COLUMNS = ("run_id", "action_plan_id", "plan_version", "state", "evaluation_key", "accepted_at", "ended_at")
STEP_COLUMNS = ("step_order", "channel_type", "state", "retry_count", "error_code", "recipient_profile_id", "ended_at")
DEAD_SHOWN = ("id", "action_plan_id", "step_order", "channel_type", "reason", "error_code", "retry_count", "failed_at")


def register(app: typer.Typer) -> None:
    app.add_typer(actions, name="actions")


def _object(text: str, what: str = "the document") -> Any:
    try:
        return msgspec.json.decode(Path(text[1:]).read_bytes() if text.startswith("@") else text)
    except OSError as error:
        raise Invalid(f"{text[1:]} can't be read ({error.strerror}); @FILE names a file") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"{what} is not JSON: {error}") from None


def _facts(found: dict[str, Any]) -> Callable[[], None]:
    return lines(*(f"{name}: {fact(value)}" for name, value in found.items() if value is not None))


# Runs


@asks(actions, may_make=True)
async def request(
    api: Api,
    action_plan_id: Annotated[int, typer.Argument(metavar="PLAN", help="The plan's id.")],
    evaluation_key: Annotated[str, typer.Argument(metavar="KEY", help="A repeat of it is the first run.")],
    device_id: Annotated[str | None, typer.Option(help="For which device.")] = None,
    variables: Annotated[str | None, typer.Option(help="What the texts ask for: a JSON object, or @FILE.")] = None,
    language: Annotated[str | None, typer.Option(help="Of the texts.")] = None,
    critical: Annotated[bool, typer.Option("--critical", help="Passes brakes and quiet hours.")] = False,
) -> Shown:
    """Ask for a plan to be run."""
    data = {
        "action_plan_id": action_plan_id,
        "evaluation_key": evaluation_key,
        "variables": None if variables is None else _object(variables, "--variables"),
        "language": language,
        "critical": critical,
    }
    answer = await api.ask("POST", "/api/actions/requests", body={"context": {"device_id": device_id}, "data": data})
    return answer, lines(f"{answer['run_id']}  {'the first run' if answer['duplicate'] else 'accepted'}")


@asks(actions)
async def runs(
    api: Api,
    state: Annotated[str | None, typer.Option(help="Only this state, for example failed.")] = None,
    after: After = None,
    limit: Limit = 50,
) -> Shown:
    """Runs, newest first."""
    page = await api.ask("GET", "/api/actions/runs", {"state": state, "after": after, "limit": limit})
    return page, table(page["items"], *RUN_COLUMNS, empty="No runs fit. Ask for one: ulak actions request PLAN KEY")


@asks(actions)
async def show(api: Api, run: Run) -> Shown:
    """One run with its steps."""
    found = await api.ask("GET", f"/api/actions/runs/{segment(run)}")
    facts, steps = _facts({name: value for name, value in found.items() if name != "steps"}), found["steps"]

    def both() -> None:
        facts()
        table(steps, *STEP_COLUMNS)()

    return found, both


@asks(actions)
async def explain(api: Api, run: Run) -> Shown:
    """Every decision about a run, a line each."""
    found = await api.ask("GET", f"/api/actions/runs/{segment(run)}/explain")
    return found, lines(*(f"{one['line']} ({local(one['at'])})" for one in found["decisions"]))


def _stop(verb: str, text: str) -> None:
    async def stop(api: Api, identifiers: Annotated[list[str], typer.Argument(metavar="RUN...")]) -> Shown:
        found = await each(identifiers, lambda one: api.ask("POST", f"/api/actions/runs/{segment(one)}/{verb}"))
        return found, table(found, "run_id", "state")

    stop.__doc__ = text
    asks(actions, verb)(stop)


_stop("cancel", "Stop runs: what waits is taken back.")
_stop("acknowledge", "Say that somebody has seen it: nobody else is called.")


@asks(actions)
async def simulate(
    api: Api,
    action_plan_id: Annotated[int, typer.Argument(metavar="PLAN")],
    variables: Annotated[str, typer.Option(help="A JSON object, or @FILE.")] = "{}",
    device_id: Annotated[str | None, typer.Option(help="For which device.")] = None,
    at: Annotated[str | None, typer.Option(help="When, like 2030-01-31T23:30:00Z; left out, now.")] = None,
) -> Shown:
    """Walk through a plan on a virtual clock; nothing is sent."""
    body = {"action_plan_id": action_plan_id, "variables": _object(variables, "--variables")}
    body |= {name: value for name, value in (("device_id", device_id), ("at", at)) if value is not None}
    found = await api.ask("POST", "/api/actions/simulate", body=body)
    columns = ("at", "step_order", "channel_type", "recipient_profile_id", "decision", "why")
    return found, table(found["timeline"], *columns)


@asks(actions)
async def forget(api: Api, profile: Annotated[int, typer.Argument(metavar="PROFILE")]) -> Shown:
    """Erase a person: profile, channels, and what runs were told. Ledger and audit chain keep the ids."""
    await api.ask("POST", f"/api/actions/profiles/{profile}/forget")
    return {"forgotten": profile}, lines(f"Profile {profile} is forgotten.")


@asks(actions)
async def messages(
    api: Api,
    topic: Annotated[str | None, typer.Option(help="Only this topic.")] = None,
    after: After = None,
    limit: Limit = 100,
) -> Shown:
    """Print the messages of the topics, in commit order."""
    page = await api.ask("GET", "/api/actions/messages", {"topic": topic, "after": after, "limit": limit})
    return page, lines(*(f"{one['seq']}  {one['topic']}  {fact(one['value'])}" for one in page["messages"]))


@asks(actions)
async def schema(api: Api, event: Annotated[str, typer.Argument(help="Like action.executed.v1.")]) -> Shown:
    """The JSON Schema of an event."""
    found = await api.ask("GET", f"/api/actions/schemas/{segment(event)}")
    return found, lines(msgspec.json.format(msgspec.json.encode(found)).decode())


@asks(actions)
async def slo(api: Api) -> Shown:
    """How well the four targets are met, and what is left of each budget."""
    found = await api.ask("GET", "/api/actions/slo")
    rows = [{"level": name, **value} for name, value in found.items() if isinstance(value, dict) and "target" in value]
    return found, table(rows, "level", "value", "target", "budget_left")


@asks(actions)
async def watchdog(api: Api) -> Shown:
    """Whether every accepted run ended, or waits for a reason."""
    found = await api.ask("GET", "/api/actions/watchdog")
    return found, _facts(found)


@asks(actions)
async def unreachable(api: Api, after: After = None, limit: Limit = 50) -> Shown:
    """Profiles that plans lead to and that have no usable channel left."""
    page = await api.ask("GET", "/api/actions/profiles/unreachable", {"after": after, "limit": limit})
    return page, table(page["items"], "recipient_profile_id", "name")


@asks(actions)
async def unreadable(api: Api, after: After = None, limit: Limit = 50) -> Shown:
    """Messages of the bus that are not requests: where they stood, and how large they are."""
    page = await api.ask("GET", "/api/actions/unreadable", {"after": after, "limit": limit})
    return page, table(page["items"], "id", "size", "at")


# Plans, profiles, channels, routes


def _resource(group: typer.Typer, what: str, *columns: str) -> None:
    """The commands that every resource of the directory has."""
    path = f"/api/actions/{what.lower()}s"

    async def list_(api: Api, after: After = None, limit: Limit = 50) -> Shown:
        page = await api.ask("GET", path, {"after": after, "limit": limit})
        return page, table(page["items"], *columns)

    async def show_one(api: Api, identifier: Number) -> Shown:
        found = await api.ask("GET", f"{path}/{identifier}")
        return found, _facts(found)

    async def add(api: Api, document: Document) -> Shown:
        made = await api.ask("POST", path, body=_object(document))
        return made, lines(f"{what} {made['id']} is made.")

    async def change(api: Api, identifier: Number, document: Document) -> Shown:
        changed = await api.ask("PATCH", f"{path}/{identifier}", body=_object(document))
        return changed, _facts(changed)

    async def delete(api: Api, identifier: Number) -> Shown:
        await api.ask("DELETE", f"{path}/{identifier}")
        return {"deleted": identifier}, lines(f"{what} {identifier} is deleted.")

    for name, call, text in (
        ("list", list_, "List them."),
        ("show", show_one, "One of them."),
        ("add", add, "Make one."),
        ("change", change, "Change the fields that are given."),
        ("delete", delete, "Delete one."),
    ):
        call.__doc__ = text
        asks(group, name, may_make=name == "add")(call)


_resource(plans, "Plan", "id", "version", "name", "critical", "updated_at")
_resource(profiles, "Profile", "id", "name", "device_id", "status", "priority")
_resource(channels, "Channel", "id", "profile_id", "channel_type", "target", "enabled", "verify_status")
_resource(routes, "Route", "id", "action_plan_id", "step_order", "recipient_profile_id", "channel_type", "enabled")


@asks(plans, "put", may_make=True)
async def put_plan(api: Api, identifier: Number, document: Document) -> Shown:
    """Make a new version, or a plan with this id."""
    made = await api.ask("PUT", f"/api/actions/plans/{identifier}", body=_object(document))
    return made, lines(f"Plan {made['id']} is at version {made['version']}.")


@asks(plans, "import", may_make=True)
async def import_plans(api: Api, file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML.")]) -> Shown:
    """Put all plans of a YAML file, or none; an error names its line."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{file} can't be read as text: {error}") from None
    page = await api.ask("POST", "/api/actions/plans/import", body=text)
    return page, table(page["items"], "id", "version", "name")


@asks(plans, "export")
async def export_plans(api: Api) -> Shown:
    """All plans as YAML."""
    found: list[dict[str, Any]] = []
    after: str | None = "0"
    while after is not None:
        page = await api.ask("GET", "/api/actions/plans", {"after": after, "limit": 1000})
        found += [{name: one[name] for name in ("id", "name", "critical", "steps")} for one in page["items"]]
        after = page["next"]
    text = yaml.safe_dump({"plans": found}, sort_keys=False, allow_unicode=True, width=100)
    return {"plans": found}, lines(text.rstrip("\n"))


@asks(channels)
async def verify(api: Api, identifier: Number) -> Shown:
    """Send a code through the channel."""
    found = await api.ask("POST", f"/api/actions/channels/{identifier}/verify")
    return found, lines(f"A code is on its way through channel {identifier}; confirm it with the code.")


@asks(channels)
async def confirm(api: Api, identifier: Number, code: Annotated[str, typer.Argument()]) -> Shown:
    """Prove a channel by the code that came through it."""
    found = await api.ask("POST", f"/api/actions/channels/{identifier}/confirm", body={"code": code})
    return found, lines(f"Channel {identifier} is {found['verify_status']}.")


@asks(channels)
async def trust(api: Api, identifier: Number) -> Shown:
    """Vouch for a channel without a code; the audit chain keeps who did."""
    found = await api.ask("POST", f"/api/actions/channels/{identifier}/trust")
    return found, lines(f"Channel {identifier} is {found['verify_status']}.")


# Dead letters


@asks(dead, "list")
async def list_dead(
    api: Api,
    error_code: Annotated[str | None, typer.Option(help="Only this code.")] = None,
    reason: Annotated[str | None, typer.Option(help="Only this reason.")] = None,
    after: After = None,
    limit: Limit = 50,
) -> Shown:
    """Dead letters, oldest first."""
    query = {"error_code": error_code, "reason": reason, "after": after, "limit": limit}
    page = await api.ask("GET", "/api/actions/dead-letters", query)
    nothing = "No dead letters. A step is here when nobody could be reached with it."
    return page, table(page["items"], *DEAD_SHOWN, empty=nothing)


@asks(dead)
async def causes(api: Api) -> Shown:
    """Dead letters by cause, the most frequent first."""
    page = await api.ask("GET", "/api/actions/dead-letters/causes")
    return page, table(
        page["items"], "number", "error_code", "reason", "channel_type", "example", empty="No dead letters."
    )


@asks(dead)
async def mend(api: Api, identifier: Annotated[str, typer.Argument(metavar="ID")], document: Document) -> Shown:
    """Change a letter's variables, subject or body before it is sent again."""
    found = await api.ask("PATCH", f"/api/actions/dead-letters/{segment(identifier)}", body=_object(document))
    return found, lines(f"Dead letter {found['id']} is mended.")


@asks(dead)
async def redrive(
    api: Api,
    identifiers: Annotated[list[str] | None, typer.Argument(metavar="[ID...]")] = None,
    error_code: Annotated[str | None, typer.Option(help="All with this code.")] = None,
    reason: Annotated[str | None, typer.Option(help="All with this reason.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that there are.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which would go.")] = False,
    rate: Annotated[float | None, typer.Option(help="So many a second.", min=0.01)] = None,
) -> Shown:
    """Send dead letters again: the ones named, or all that fit."""
    if identifiers:
        path = "/api/actions/dead-letters/{}/redrive"
        found = await each(
            identifiers, lambda one: api.ask("POST", path.format(segment(one)), body={"dry_run": dry_run})
        )
        return found, table(found, "id", "dry_run")
    if not (everything or error_code or reason):
        raise Invalid("name dead letters by their ids or by a filter, such as --error-code, or give --all")
    body = {"error_code": error_code, "reason": reason, "dry_run": dry_run, "rate_per_second": rate}
    answer = await api.ask("POST", "/api/actions/dead-letters/redrive", body=body)
    return answer, lines(f"{answer['matched']} {'would go' if dry_run else 'went back to work'}.")
