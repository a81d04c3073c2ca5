"""Kinds and the audit log over HTTP."""

from __future__ import annotations

import pytest

from tests.api.serving import serving, with_deaths


@pytest.fixture
async def served():
    async with serving(with_deaths) as served:
        yield served


def item(answer, kind):
    (found,) = [one for one in answer.body["items"] if one["kind"] == kind]
    return found


async def test_kinds_are_listed_with_their_jobs_and_limits(served):
    await served.ask("PATCH", "/api/kinds/doomed", {"paused": True})
    await served.enqueue("doomed")
    found = item(await served.get("/api/kinds"), "doomed")
    assert (found["handled"], found["served"], found["paused"], found["jobs"]) == (True, True, True, {"ready": 1})
    assert found["oldestAt"] is not None


async def test_what_is_left_out_stays_and_null_is_the_handlers_own(served):
    assert (await served.ask("PATCH", "/api/kinds/doomed", {"concurrency": 2})).body["concurrency"] == 2
    found = (await served.ask("PATCH", "/api/kinds/doomed", {"paused": True})).body
    assert (found["concurrency"], found["paused"]) == (2, True)
    found = (await served.ask("PATCH", "/api/kinds/doomed", {"concurrency": None})).body
    assert (found["concurrency"], found["paused"]) == (found["declared"], True)


async def test_a_kind_with_a_slash_is_paused(served):
    await served.enqueue("shop/order")
    found = await served.ask("PATCH", "/api/kinds/shop%2Forder", {"paused": True})
    assert (found.status, found.body["kind"], found.body["paused"]) == (200, "shop/order", True)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("doomed", {}, 400),
        ("doomed", {"concurrency": 0}, 400),
        ("doomed", {"paused": "perhaps"}, 400),
        ("doomed", {"speed": 1}, 400),
        ("nobody.knows", {"paused": True}, 404),
    ],
)
async def test_a_change_that_makes_no_sense_is_refused(served, path, body, status):
    assert (await served.ask("PATCH", f"/api/kinds/{path}", body)).status == status


async def test_steering_and_the_audit_log_need_admin(served):
    key = await served.make_key("jobs")
    assert (await served.get("/api/kinds", key=key)).status == 200
    assert (await served.ask("PATCH", "/api/kinds/doomed", {"paused": True}, key=key)).status == 403
    assert (await served.get("/api/audit", key=key)).status == 403
    assert (await served.get("/api/audit/verify", key=key)).status == 403


async def test_the_audit_log_is_listed_newest_first_by_pages_and_verified(served):
    key = await served.make_key("admin")
    for paused in (True, False, True):
        await served.ask("PATCH", "/api/kinds/doomed", {"paused": paused}, key=key)
    first = (await served.get("/api/audit?limit=2")).body
    assert [(one["who"], one["verb"], one["object"]) for one in first["items"]] == [
        ("test", "kinds.pause", "doomed"),
        ("test", "kinds.resume", "doomed"),
    ]
    rest = (await served.get(f"/api/audit?limit=2&after={first['next']}")).body
    assert [(one["seq"], one["verb"]) for one in rest["items"]] == [("2", "kinds.pause"), ("1", "keys.create")]
    assert (await served.get(f"/api/audit?limit=2&after={rest['next']}")).body == {"items": [], "next": None}
    assert len((await served.get("/api/audit?verb=kinds.pause&object=doomed")).body["items"]) == 2
    chain = (await served.get("/api/audit/verify")).body
    assert (chain["valid"], chain["seq"], chain["hash"]) == (True, "4", first["items"][0]["hash"])
