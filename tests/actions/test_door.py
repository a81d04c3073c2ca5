"""The room over HTTP: fields, states and status codes as the reference has them."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json

import pytest
from aiohttp import web

from tests.api.serving import serving
from tests.providers import slack, twilio
from tests.providers.server import serving as provider

PREFIX = "/api/actions"
REQUEST = {
    "event": "action.execute.requested.v1",
    "meta": {"schema_version": 1, "trace_id": "act-1"},
    "context": {"device_id": "400000011D081B70", "stream_id": 9823412},
}
ENDED = {"done", "failed", "cancelled", "acknowledged"}


@contextlib.asynccontextmanager
async def receiver():
    """A webhook receiver: the last word of the path says how it answers."""
    seen: list[tuple[str, dict]] = []
    answers = {"ok": 200, "gone": 410, "down": 503}

    async def take(request: web.Request) -> web.Response:
        how = request.match_info["how"]
        seen.append((how, await request.json()))
        return web.Response(status=answers[how])

    app = web.Application()
    app.router.add_post("/{how}", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", seen
    finally:
        await runner.cleanup()


class Asking:
    """The verbs of these tests."""

    def __init__(self, served) -> None:
        self.served = served

    async def __call__(self, method, path, body=..., **options):
        return await self.served.ask(method, PREFIX + path, body, **options)

    async def made(self, path, body) -> dict:
        answer = await self("POST", path, body)
        assert answer.status == 201, answer.text
        return answer.body

    async def plan(self, target, *steps, kind="webhook") -> int:
        """A plan whose steps go to a target."""
        plan = await self.made("/plans", {"name": "Pump", "steps": list(steps)})
        profile = await self.made("/profiles", {"name": "Ops OnCall"})
        channel = await self.made("/channels", {"profile_id": profile["id"], "channel_type": kind, "target": target})
        assert (await self("POST", f"/channels/{channel['id']}/trust")).body["verify_status"] == "verified"
        for step in steps:
            route = {
                "action_plan_id": plan["id"],
                "step_order": step["step_order"],
                "recipient_profile_id": profile["id"],
            }
            await self.made("/routes", route)
        return plan["id"]

    async def run(self, plan, key, **data) -> dict:
        body = {
            **REQUEST,
            "data": {"action_plan_id": plan, "evaluation_key": key, "group_id": 12, "rule_id": 114, **data},
        }
        answer = await self("POST", "/requests", body)
        assert answer.status == 202, answer.text
        return await self.ended(answer.body["run_id"])

    async def ended(self, run) -> dict:
        async with asyncio.timeout(30):
            with self.served.ulak.loops.watching() as news:
                while True:
                    news.clear()
                    found = (await self("GET", f"/runs/{run}")).body
                    if found["state"] in ENDED:
                        return found
                    await news.wait()


def fields_of(answer) -> set[str]:
    assert answer.status == 400, answer.text
    return {one["field"] for one in answer.body["fields"]}


WEBHOOK = {"step_order": 1, "channel_type": "webhook", "body": "Level {{ level }}"}
LOCAL = {"channels.webhook.allow": "127.0.0.0/8"}


async def test_a_request_runs_its_plan_and_everything_about_it_can_be_read():
    async with receiver() as (url, seen), serving(**LOCAL) as served:
        ask = Asking(served)
        plan = await ask.plan(f"{url}/ok", WEBHOOK, {"step_order": 2, "channel_type": "audit", "body": "x"})
        run = await ask.run(plan, "k-1", variables={"level": 3})
        assert (run["state"], [step["state"] for step in run["steps"]]) == ("done", ["sent", "sent"])
        assert seen[0][1]["body"] == "Level 3"
        assert run["steps"][0]["provider_message_id"] == f"webhook:{seen[0][1]['id']}"
        repeat = await ask("POST", "/requests", {"data": {"action_plan_id": plan, "evaluation_key": "k-1"}})
        assert (repeat.status, repeat.body["duplicate"], repeat.body["run_id"]) == (202, True, run["run_id"])
        other = await ask.plan(f"{url}/ok", WEBHOOK)
        clash = await ask("POST", "/requests", {"data": {"action_plan_id": other, "evaluation_key": "k-1"}})
        assert clash.status == 409
        page = (await ask("GET", "/runs?limit=1&state=done")).body
        assert [one["run_id"] for one in page["items"]] == [run["run_id"]]
        lines = [one["line"] for one in (await ask("GET", f"/runs/{run['run_id']}/explain")).body["decisions"]]
        assert any(line.startswith("step 1: sent") for line in lines)
        told = (await ask("GET", "/messages?topic=cinga.action.executed")).body
        assert [one["key"] for one in told["messages"]] == ["400000011D081B70"] * 2
        assert set(told) == {"messages", "after"}
        assert set(told["messages"][0]) == {"seq", "topic", "key", "value"}
        assert (await ask("GET", f"/messages?after={told['after']}")).body["messages"] == []
        levels = (await ask("GET", "/slo")).body
        assert set(levels["success_rate"]) == {"value", "target", "budget_left"}
        assert set(levels["channels"]) == {"webhook", "audit"}
        assert (await ask("GET", "/watchdog")).body["difference"] == 0


async def test_what_is_wrong_is_named_field_by_field():
    async with serving() as served:
        ask = Asking(served)
        assert fields_of(await ask("POST", "/requests", {"data": {"evaluation_key": ""}})) == {
            "data.action_plan_id",
            "data.evaluation_key",
        }
        unknown = {"data": {"action_plan_id": 99, "evaluation_key": "k"}}
        assert fields_of(await ask("POST", "/requests", unknown)) == {"data.action_plan_id"}
        assert fields_of(await ask("POST", "/profiles", {"name": "", "device_id": "x" * 22})) == {"name", "device_id"}
        assert fields_of(await ask("POST", "/plans", {"name": "x", "steps": [{"channel_type": "fax"}]})) == {
            "steps.0.step_order",
            "steps.0.channel_type",
        }
        assert fields_of(await ask("POST", "/simulate", {"action_plan_id": 99})) == {"action_plan_id"}
        assert (await ask("GET", "/runs/nothing")).status == 404
        assert (await ask("GET", "/plans/7")).status == 404
        assert (await ask("POST", "/requests", data=b"{")).status == 400
        batch = await ask("POST", "/requests/batch", [unknown, {"data": {}}])
        assert (batch.status, [one["status"] for one in batch.body]) == (207, [400, 400])
        lines = await ask(
            "POST", "/plans/import", data=b"plans:\n- name: a\n  steps:\n  - step_order: 1\n    channel_type: fax\n"
        )
        assert lines.status == 400
        assert "line 5" in lines.text


async def test_plans_have_versions_and_go_out_and_in_as_yaml():
    async with serving() as served:
        ask = Asking(served)
        document = {"name": "Pump", "steps": [{"step_order": 1, "channel_type": "audit", "body": "x"}]}
        first, second = await ask("PUT", "/plans/21", document), await ask("PUT", "/plans/21", document)
        assert (first.status, first.body["version"], second.status, second.body["version"]) == (201, 1, 200, 2)
        assert (await ask("GET", "/plans/21?version=1")).body["version"] == 1
        text = (await ask("GET", "/plans/export")).text
        again = await ask("POST", "/plans/import", data=text.encode())
        assert [(one["id"], one["version"]) for one in again.body["items"]] == [(21, 3)]
        assert (await ask("PATCH", "/plans/21", {"critical": True})).body["version"] == 3
        assert (await ask("DELETE", "/plans/21")).status == 204
        assert (await ask("GET", "/plans/21")).status == 404


async def test_a_dead_letter_is_found_mended_and_sent_again():
    async with receiver() as (url, seen), serving(**LOCAL) as served:
        ask = Asking(served)
        plan = await ask.plan(f"{url}/down", {**WEBHOOK, "retries": 0})
        run = await ask.run(plan, "k", variables={"level": 1})
        assert (run["state"], run["steps"][0]["error_code"]) == ("failed", "WEBHOOK_HTTP_503")
        (letter,) = (await ask("GET", "/dead-letters?error_code=WEBHOOK_HTTP_503&reason=retry_exhausted")).body["items"]
        assert (letter["run_id"], letter["retry_count"]) == (run["run_id"], 0)
        (cause,) = (await ask("GET", "/dead-letters/causes")).body["items"]
        assert (cause["error_code"], cause["number"]) == ("WEBHOOK_HTTP_503", 1)
        path = f"/dead-letters/{letter['id']}"
        assert fields_of(await ask("PATCH", path, {"colour": "red"})) == {"colour"}
        assert (await ask("PATCH", path, {"body": "mended"})).status == 200
        assert (await ask("POST", f"{path}/redrive", {"dry_run": True})).status == 200
        assert (await ask("POST", f"{path}/redrive", {"dry_run": False})).status == 202
        assert (await ask("POST", f"{path}/redrive")).status in {202, 404}  # it may have died again meanwhile
        assert (await ask("POST", "/dead-letters/redrive", {"reason": "lost"})).status == 400
        async with asyncio.timeout(10):
            while len(seen) < 2:
                await asyncio.sleep(0.01)
        assert (seen[1][1]["body"], seen[1][1]["id"]) == ("mended", seen[0][1]["id"])


async def test_a_410_takes_its_channel_out_of_use_and_names_whom_no_plan_reaches():
    async with receiver() as (url, _), serving(**LOCAL) as served:
        ask = Asking(served)
        run = await ask.run(await ask.plan(f"{url}/gone", {**WEBHOOK, "body": "x"}), "k")
        assert (run["state"], run["steps"][0]["error_code"]) == ("failed", "WEBHOOK_HTTP_410")
        assert (await ask("GET", "/channels/1")).body["verify_status"] == "failed"
        page = (await ask("GET", "/profiles/unreachable")).body
        assert [one["recipient_profile_id"] for one in page["items"]] == [1]


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59Z", "1969-12-31T23:59:59Z", "2030-01-01T00:00:00"])
async def test_a_simulation_at_an_instant_that_no_plan_reaches_is_refused_by_name(at):
    async with serving(**LOCAL) as served:
        ask = Asking(served)
        made = await ask("POST", "/plans", {"name": "P", "steps": [{"step_order": 1, "channel_type": "audit"}]})
        answer = await ask("POST", "/simulate", {"action_plan_id": made.body["id"], "at": at})
    assert (answer.status, [one["field"] for one in answer.body["fields"]]) == (400, ["at"])


async def test_a_links_page_asks_for_a_tap_and_needs_no_key():
    async with receiver() as (url, seen), serving(**LOCAL) as served:
        served.key = await served.make_key("actions")
        served.door.access.required = True
        ask = Asking(served)
        late = {"step_order": 2, "channel_type": "audit", "delay_seconds": 600}
        plan = await ask.plan(f"{url}/ok", {**WEBHOOK, "body": "{{ acknowledge_url }}"}, late)
        body = {"data": {"action_plan_id": plan, "evaluation_key": "k"}}
        run = (await ask("POST", "/requests", body)).body["run_id"]
        async with asyncio.timeout(10):
            while not seen:
                await asyncio.sleep(0.01)
        token = seen[0][1]["body"].rpartition("/")[2]
        served.key = None
        assert (await ask("GET", "/runs")).status == 401
        page = await ask("GET", f"/acknowledge/{token}")
        assert (page.status, 'method="post"' in page.text) == (200, True)
        assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
        assert (page.headers["Referrer-Policy"], page.headers["Cache-Control"]) == ("no-referrer", "no-store")
        assert (await ask("GET", f"/acknowledge/{token[:-3]}AAA")).status == 404
        assert (await ask("POST", f"/acknowledge/{token}")).status == 200
        served.key = await served.make_key("actions")
        assert (await ask("GET", f"/runs/{run}")).body["state"] == "acknowledged"


async def test_targets_are_masked_unless_revealed_and_that_is_audited():
    async with serving() as served:
        ask = Asking(served)
        profile = await ask.made("/profiles", {"name": "Ops"})
        target = {"profile_id": profile["id"], "channel_type": "email", "target": "ada.lovelace@example.org"}
        made = await ask.made("/channels", {**target, "target_meta": {"headers": {"X-Key": "of lovelace"}}})
        masked = [made, (await ask("GET", "/channels")).body, (await ask("GET", f"/channels/{made['id']}")).body]
        assert not any("lovelace" in json.dumps(one) for one in masked)
        revealed = (await ask("GET", f"/channels/{made['id']}?reveal=true")).body
        assert revealed["target"] == "ada.lovelace@example.org"
        assert revealed["target_meta"] == {"headers": {"X-Key": "of lovelace"}}
        audit = (await served.get("/api/audit")).text
        assert "actions.revealed" in audit
        assert "lovelace" not in audit


async def test_the_audit_log_shows_the_digest_of_an_audit_steps_text_to_compare_with():
    async with serving() as served:
        ask = Asking(served)
        told = {"step_order": 1, "channel_type": "audit", "body": "told {{ who }}"}
        plan = await ask.made("/plans", {"name": "P", "steps": [told]})
        await ask.run(plan["id"], "e-1", variables={"who": "ada@example.org"})
        (line,) = (await served.get("/api/audit?verb=actions.step.audited")).body["items"]
        assert line["detail"]["text_sha256"] == hashlib.sha256(b"told ada@example.org").hexdigest()


async def test_providers_receipts_are_believed_by_their_signature_alone():
    overrides = {
        "http.public_url": "https://ulak.example.org",
        "channels.sms.auth_token": twilio.TOKEN,
        "channels.slack.signing_secret": slack.SECRET,
    }
    async with serving(**overrides) as served:
        ask = Asking(served)
        url = "https://ulak.example.org/api/actions/receipts/twilio"
        headers, body = twilio.status_callback(url, "SM1", "delivered")
        forged = await ask("POST", "/receipts/twilio", data=body)
        taken = await ask("POST", "/receipts/twilio", data=body, headers=headers)
        assert (forged.status, forged.body["error"]) == (401, "unauthenticated")
        assert (taken.status, taken.body) == (200, {"known": 0})
        assert (await ask("POST", "/receipts/nobody", data=b"x")).status == 404


async def test_a_tap_on_the_button_under_a_slack_message_acknowledges_its_run_and_nothing_else_does():
    async with provider(slack.SlackServer()) as server:
        overrides = {
            "channels.slack.token": slack.TOKEN,
            "channels.slack.url": server.url,
            "channels.slack.signing_secret": slack.SECRET,
        }
        async with serving(**LOCAL, **overrides) as served:
            ask = Asking(served)
            said = {"step_order": 1, "channel_type": "slack", "body": "<!channel> the pump stands still"}
            late = {"step_order": 2, "channel_type": "audit", "delay_seconds": 600}
            plan = await ask.plan("C024BE91L", said, late, kind="slack")
            body = {"data": {"action_plan_id": plan, "evaluation_key": "k"}}
            run = (await ask("POST", "/requests", body)).body["run_id"]
            async with asyncio.timeout(30):
                while not server.sent:
                    await asyncio.sleep(0.01)
            [section, buttons] = server.sent[0]["blocks"]
            assert section["text"]["type"] == "plain_text"  # so <!channel> calls nobody
            assert "<!channel>" not in server.sent[0]["text"]
            value, now = buttons["elements"][0]["value"], served.ulak.clock.now() // 1000

            async def tap(at, action, value, **changed):
                headers, data = slack.interaction(at, action, value)
                return (await ask("POST", "/receipts/slack", data=data, headers={**headers, **changed})).status

            assert await tap(now - 3600, "acknowledge", value) == 401
            assert await tap(now, "acknowledge", value, **{"X-Slack-Signature": "v0=00"}) == 401
            assert await tap(now, "acknowledge", value[:-3] + "AAA") == 404
            assert await tap(now, "other_button", value) == 200
            assert (await ask("GET", f"/runs/{run}")).body["state"] == "running"
            assert await tap(now, "acknowledge", value) == 200
            assert await tap(now, "acknowledge", value) == 200  # Slack posts again what it is not sure of
            found = (await ask("GET", f"/runs/{run}")).body
    assert (found["state"], found["ended_by"]) == ("acknowledged", "slack:U1")
    assert [step["state"] for step in found["steps"]] == ["sent", "skipped"]


@pytest.mark.parametrize("event", ["action.execute.requested.v1", "action.executed.v1", "action.failed.v1"])
async def test_every_event_has_its_schema(event):
    async with serving(work=False) as served:
        assert (await Asking(served)("GET", f"/schemas/{event}")).body["$schema"].startswith("https://json-schema.org")
