"""`ulak notify` on a store without a server: the commands open it themselves."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from ulak import Conflict, Invalid, NotFound
from ulak.cli import app
from ulak.cli.commands.notify import notify
from ulak.notify.model import Request

HOOK = "https://example.org/hook"


@pytest.fixture
def run(tmp_path):
    def run(*words):
        done = CliRunner().invoke(app, ["notify", *words, "--json", f"--set=store=sqlite:///{tmp_path}/ulak.db"])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        begins = re.search(r"^[\[{]", done.output, re.MULTILINE)
        return json.JSONDecoder().raw_decode(done.output[begins.start() :])[0]

    return run


def test_a_notification_is_sent_shown_listed_and_cancelled(run):
    made = run("send", "sms", "+905551112233", "Hello", "--priority", "HIGH", "--metadata", '{"a": 1}')
    assert made["status"] == "ACCEPTED"
    shown = run("show", made["id"])
    assert (shown["status"], shown["priority"], "5551112" in json.dumps(shown)) == ("WAITING", "HIGH", False)
    assert run("show", made["id"], "--reveal")["recipient"] == "+905551112233"
    assert [one["id"] for one in run("list", "--status", "WAITING")["items"]] == [made["id"]]
    assert run("list", "--type", "EMAIL")["items"] == []
    assert run("cancel", made["id"]) == [{"id": made["id"], "status": "CANCELLED"}]
    with pytest.raises(Conflict, match="only FAILED, DEAD or HELD"):
        run("resend", made["id"])


def test_send_takes_every_field_of_a_notification(run):
    options = {one.name for one in get_command(notify).commands["send"].params}
    fields = {field.name for field in msgspec.structs.fields(Request)}
    assert fields - {"type"} | {"event_type"} <= options
    made = run("send", "WEBHOOK", HOOK, "Hi", "--timeout-seconds", "7.5", "--target-meta", '{"headers": {"X-A": "1"}}')
    assert run("show", made["id"])["status"] == "WAITING"


def test_an_inbox_is_read_by_a_name_with_any_letters(run):
    run("send", "IN_APP", "somebody", "else")
    assert run("inbox", "ayşe+1@example.org", "--unread", "--mark-read") == {
        "unread": 0,
        "items": [],
        "nextBefore": None,
    }


def test_endpoints_are_registered_enabled_and_forgotten(run):
    assert run("endpoints", "register", HOOK)["secret"].startswith("whsec_")
    (listed,) = run("endpoints", "list", "--reveal")
    assert (listed["url"], listed["secrets"]) == (HOOK, 1)
    assert listed["id"]
    assert run("endpoints", "enable", HOOK) == {"url": HOOK}
    assert run("endpoints", "forget", HOOK) == {"url": HOOK}
    with pytest.raises(NotFound):
        run("endpoints", "forget", HOOK)


@pytest.mark.parametrize(
    "words",
    [("sms", "+905551112233"), ("sms", "x", "y", "--metadata", "{"), ("email", "ada@b.c", "x", "--priority", "SOON")],
)
def test_a_wrong_notification_is_told(run, words):
    with pytest.raises(Invalid):
        run("send", *words)
