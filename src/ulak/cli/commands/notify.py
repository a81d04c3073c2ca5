"""`ulak notify`: send, show, list, cancel and resend notifications, read inboxes, manage webhook endpoints."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from ulak.cli.command import Api, Shown, asks, each, lines, segment, table
from ulak.cli.table import fact, local
from ulak.errors import Invalid

notify = typer.Typer(help="Send notifications and see what became of them.", no_args_is_help=True)
endpoints = typer.Typer(
    help="Webhook endpoints: their secrets, and whether they are switched on.", no_args_is_help=True
)
notify.add_typer(endpoints, name="endpoints")

COLUMNS = ("id", "notificationType", "status", "priority", "recipient", "attempts", "createdAt", "settledAt")
EMPTY = "No notifications fit. Send one: ulak notify send IN_APP ayse Merhaba"
Id = Annotated[str, typer.Argument(metavar="ID")]
Url = Annotated[str, typer.Argument(metavar="URL")]
Reveal = Annotated[bool, typer.Option("--reveal", help="Show recipients and texts as they are, not masked.")]


def register(app: typer.Typer) -> None:
    app.add_typer(notify, name="notify")


@asks(notify, may_make=True)
async def send(
    api: Api,
    notification_type: Annotated[str, typer.Argument(metavar="TYPE", help="EMAIL, SMS, PUSH, IN_APP or WEBHOOK.")],
    recipient: Annotated[str, typer.Argument(help="Address, number, user, device or URL.")],
    body: Annotated[str | None, typer.Argument(help="What it says; or give --template.")] = None,
    subject: Annotated[str | None, typer.Option(help="Title or subject line.")] = None,
    html: Annotated[str | None, typer.Option(help="The same as HTML, for EMAIL.")] = None,
    priority: Annotated[str | None, typer.Option(help="LOW, NORMAL, HIGH or URGENT.")] = None,
    metadata: Annotated[str | None, typer.Option(help="A JSON object.")] = None,
    send_at: Annotated[str | None, typer.Option(help="Not before, like 2030-01-31T10:30:00Z.")] = None,
    expires_at: Annotated[str | None, typer.Option(help="Not after.")] = None,
    order_key: Annotated[str | None, typer.Option(help="In order with others of this key.")] = None,
    on_uncertain: Annotated[str | None, typer.Option(help="resend or hold.")] = None,
    template: Annotated[str | None, typer.Option(help="Name of a template.")] = None,
    variables: Annotated[str | None, typer.Option(help="The template's variables, a JSON object.")] = None,
    language: Annotated[str | None, typer.Option(help="The template's language.")] = None,
    event_type: Annotated[str | None, typer.Option("--type", help="Of a WEBHOOK: the event's type.")] = None,
    payload: Annotated[str | None, typer.Option(help="Of a WEBHOOK: your own JSON object.")] = None,
    reference: Annotated[str | None, typer.Option(help="Your own name for it, to find it by.")] = None,
    timeout_seconds: Annotated[float | None, typer.Option(help="Longest time for one attempt.")] = None,
    target_meta: Annotated[str | None, typer.Option(help="About the address, a JSON object.")] = None,
) -> Shown:
    """Accept a notification; without a running server it is delivered at the next start."""
    given = {
        "notificationType": notification_type.upper(),
        "recipient": recipient,
        "body": body,
        "subject": subject,
        "html": html,
        "priority": priority,
        "metadata": _object("--metadata", metadata),
        "sendAt": send_at,
        "expiresAt": expires_at,
        "orderKey": order_key,
        "onUncertain": on_uncertain,
        "template": template,
        "variables": _object("--variables", variables),
        "language": language,
        "type": event_type,
        "payload": _object("--payload", payload),
        "reference": reference,
        "timeoutSeconds": timeout_seconds,
        "targetMeta": _object("--target-meta", target_meta),
    }
    request = {name: value for name, value in given.items() if value is not None}
    accepted = await api.ask("POST", "/api/notifications", body=request)
    return accepted, lines(f"{accepted['id']}  {accepted['status']}")


def _object(option: str, text: str | None) -> Any:
    try:
        return None if text is None else msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Invalid(f"{option} is not JSON: {error}") from None


@asks(notify)
async def show(api: Api, identifier: Id, reveal: Reveal = False) -> Shown:
    """One notification with its attempts and timeline."""
    found = await api.ask("GET", f"/api/notifications/{segment(identifier)}", {"reveal": reveal})
    facts = [f"{name}: {fact(value)}" for name, value in found.items() if name != "timeline" and value is not None]
    steps = [
        f"  {local(one['at'])}  {one['what']} ({one['attempt']})  {fact(one['detail'])}" for one in found["timeline"]
    ]
    return found, lines(*facts, "timeline:", *steps)


@asks(notify, "list")
async def list_(
    api: Api,
    status: Annotated[str | None, typer.Option(help="Only this status, for example DELIVERED or HELD.")] = None,
    notification_type: Annotated[str | None, typer.Option("--type", help="Only this type.")] = None,
    reference: Annotated[str | None, typer.Option(help="Only those with this reference.")] = None,
    before: Annotated[str | None, typer.Option(help="Only what is older than this id: the next page.")] = None,
    limit: Annotated[int, typer.Option(help="Most rows.")] = 50,
    reveal: Reveal = False,
) -> Shown:
    """Notifications, newest first."""
    query = {
        "status": status,
        "reference": reference,
        "notificationType": notification_type,
        "before": before,
        "limit": limit,
        "reveal": reveal,
    }
    page = await api.ask("GET", "/api/notifications", query)
    return page, table(page["items"], *COLUMNS, empty=EMPTY)


@asks(notify)
async def cancel(api: Api, identifiers: Annotated[list[str], typer.Argument(metavar="ID...")]) -> Shown:
    """Cancel notifications that are not finished."""
    verdicts = await each(identifiers, lambda one: _verb(api, one, "cancel"))
    return verdicts, table(verdicts, "id", "status")


@asks(notify)
async def resend(api: Api, identifiers: Annotated[list[str], typer.Argument(metavar="ID...")]) -> Shown:
    """Send FAILED, DEAD or HELD notifications again, under their own ids."""
    verdicts = await each(identifiers, lambda one: _verb(api, one, "resend"))
    return verdicts, table(verdicts, "id", "status")


async def _verb(api: Api, identifier: str, verb: str) -> Any:
    return await api.ask("POST", f"/api/notifications/{segment(identifier)}/{verb}")


@asks(notify)
async def inbox(
    api: Api,
    recipient: Annotated[str, typer.Argument(help="Whose.")],
    unread: Annotated[bool, typer.Option("--unread", help="Only what is not read yet.")] = False,
    mark_read: Annotated[bool, typer.Option("--mark-read", help="Mark all as read afterwards.")] = False,
    limit: Annotated[int, typer.Option(help="Most rows.")] = 50,
) -> Shown:
    """A recipient's in-app notifications, newest first."""
    place = f"/api/inbox/{segment(recipient, slashes=True)}"
    page = await api.ask("GET", place, {"unread": unread, "limit": limit})
    if mark_read:
        await api.ask("POST", f"{place}/read")
    return page, table(
        page["items"],
        "id",
        "subject",
        "body",
        "createdAt",
        "readAt",
        empty="The inbox is empty. IN_APP messages come here.",
    )


@asks(endpoints, "list")
async def list_endpoints(api: Api, reveal: Reveal = False) -> Shown:
    """Known webhook endpoints."""
    found = await api.ask("GET", "/api/webhook-endpoints", {"reveal": reveal})
    return found, table(
        found,
        "id",
        "url",
        "secrets",
        "disabledAt",
        "reason",
        empty="No endpoints. Make one known: ulak notify endpoints register URL",
    )


@asks(endpoints, "register", may_make=True)
async def register_endpoint(
    api: Api,
    url: Url,
    secret: Annotated[str | None, typer.Option(help="whsec_… or whsk_…; left out, one is made.")] = None,
    require_secret: Annotated[
        bool, typer.Option("--require-secret", help="Send nothing before it has a secret that you give.")
    ] = False,
) -> Shown:
    """Make an endpoint known, or rotate its secret; the old one signs for a day more. Prints the secret, once."""
    body: dict[str, Any] = {"url": url, "requireSecret": require_secret}
    made = await api.ask("POST", "/api/webhook-endpoints", body=body if secret is None else {**body, "secret": secret})
    return made, lines(made["secret"] or "Registered; it is sent nothing before you give it a secret.")


@asks(endpoints, "public-key", may_make=True)
async def public_key(api: Api) -> Shown:
    """Print the key that verifies webhooks to endpoints without a secret of their own."""
    found = await api.ask("GET", "/api/webhook-endpoints/public-key")
    return found, lines(found["publicKey"])


@asks(endpoints)
async def attempts(api: Api, url: Url, limit: Annotated[int, typer.Option(min=1, max=500)] = 50) -> Shown:
    """List the attempts at an endpoint with its answers, newest first."""
    found = await api.ask("GET", "/api/webhook-endpoints/attempts", {"url": url, "limit": limit})
    return found, table(
        found["items"],
        "id",
        "attempt",
        "at",
        "status",
        "milliseconds",
        "code",
        empty="Nothing was sent there yet. Try: ulak notify endpoints test URL",
    )


@asks(endpoints)
async def test(api: Api, url: Url) -> Shown:
    """Send a test event to an endpoint."""
    accepted = await api.ask("POST", "/api/webhook-endpoints/test", body={"url": url})
    return accepted, lines(f"{accepted['id']}  {accepted['status']}")


@asks(endpoints)
async def replay(
    api: Api, url: Url, since: Annotated[str, typer.Option(help="An instant, like 2030-01-31T10:30:00Z.")]
) -> Shown:
    """Send what failed to reach an endpoint since a time again."""
    done = await api.ask("POST", "/api/webhook-endpoints/replay", body={"url": url, "since": since})
    return done, lines(f"{done['resent']} sent again.")


@asks(endpoints)
async def enable(api: Api, url: Url) -> Shown:
    """Send to a switched-off endpoint again."""
    await api.ask("POST", "/api/webhook-endpoints/enable", body={"url": url})
    return {"url": url}, lines("Enabled.")


@asks(endpoints)
async def forget(api: Api, url: Url) -> Shown:
    """Forget an endpoint and its secrets."""
    await api.ask("POST", "/api/webhook-endpoints/forget", body={"url": url})
    return {"url": url}, lines("Forgotten.")
