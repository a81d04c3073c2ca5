"""The room's routes as somebody outside sees them: statuses, fields, codes, bad input, positions, lists and streams."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import pytest
import pytest_asyncio

from tests.api.serving import serving
from ulak.http.routes.dispatch import routes

TASK = {"requesterId": "ayse", "category": "market", "latitude": 41.0, "longitude": 29.0}
OFFER = {"offerId", "taskId", "category", "description", "distanceMeters", "deadlineAt", "ttlSeconds"}
UNKNOWN = "0ca0d6db-9140-8000-8000-0000756c616b"


@pytest_asyncio.fixture
async def served():
    async with serving() as found:
        for number, name in enumerate(("ahmet", "berat", "can")):
            body = {"name": name.title(), "latitude": 41.0 + number * 1e-3, "longitude": 29.0}
            assert (await found.ask("PUT", f"/helpers/{name}", body)).status == 200
        yield found


def fields(answer: Any) -> set[str]:
    return {one["field"] for one in answer.body["fields"]}


async def opened(served, **more: Any) -> dict[str, Any]:
    answer = await served.post("/tasks", TASK | more)
    assert answer.status == 201, answer.text
    return answer.body


async def said(served, task: str, verb: str, **body: Any) -> Any:
    return await served.ask("PUT", f"/tasks/{task}/{verb}", body)


async def test_a_helper_is_answered_with_every_field(served):
    answer = await served.get("/helpers/ahmet")
    assert answer.body == {
        "id": "ahmet", "name": "Ahmet", "isActive": True, "latitude": 41.0, "longitude": 29.0, "skills": [],
        "language": None, "contact": {"notificationType": "IN_APP", "recipient": "ahmet"}, "status": "IDLE",
        "positionAt": answer.body["positionAt"], "completedThisMonth": 0, "timeoutsInRow": 0,
    }  # fmt: skip


async def test_a_task_shows_whom_it_waits_for_and_whom_it_would_ask(served):
    task = await opened(served)
    assert (task["status"], task["helperId"], task["taskCandidates"]) == ("OFFERED", None, ["berat", "can"])
    (pending,) = task["pendingAssignments"]
    assert pending.keys() == {"helperId", "offerId", "deadlineAt", "ttlSeconds"}
    assert (pending["helperId"], pending["ttlSeconds"]) == ("ahmet", 600)
    (offer,) = (await served.get("/helpers/ahmet/offers")).body["items"]
    assert offer.keys() == OFFER
    assert offer["taskId"] == task["id"]


async def test_events_name_tasks_and_offers_as_the_routes_do(served):
    task = await opened(served)
    offer = task["pendingAssignments"][0]["offerId"]
    await said(served, task["id"], "accept", helperId="ahmet")
    events = (await served.get("/api/events?limit=1000")).body["events"]
    told = [(one["name"], one["data"]) for one in events if one["name"].startswith("dispatch.")]
    assert told == [
        ("dispatch.task.opened", {"task": task["id"]}),
        ("dispatch.offer.opened", {"task": task["id"], "helper": "ahmet", "offer": offer}),
        ("dispatch.offer.accepted", {"task": task["id"], "helper": "ahmet", "offer": offer}),
        ("dispatch.task.assigned", {"task": task["id"], "helper": "ahmet"}),
    ]


async def test_every_answer_and_every_code(served):
    task = (await opened(served))["id"]
    assert (await said(served, task, "accept", helperId="berat")).body["code"] == "NOT_OFFERED"
    refused = await said(served, task, "reject", helperId="ahmet")
    assert refused.body["pendingAssignments"][0]["helperId"] == "berat"
    assert (await said(served, task, "reject", helperId="ahmet")).status == 200
    closed = await said(served, task, "accept", helperId="ahmet")
    assert (closed.status, closed.body["error"], closed.body["code"]) == (409, "conflict", "OFFER_CLOSED")
    assert (await said(served, task, "accept", helperId="berat")).body["helperId"] == "berat"
    assert (await said(served, task, "accept", helperId="berat")).status == 200
    assert (await said(served, task, "accept", helperId="ahmet")).body["code"] == "ALREADY_TAKEN"
    assert (await said(served, task, "complete", helperId="ahmet")).body["code"] == "NOT_ASSIGNED"
    given_back = await said(served, task, "release", helperId="berat", reason="flat tyre")
    assert (given_back.body["status"], given_back.body["pendingAssignments"][0]["helperId"]) == ("OFFERED", "can")
    assert (await said(served, task, "accept", helperId="can")).status == 200
    assert (await said(served, task, "complete", helperId="can")).body["status"] == "COMPLETED"
    assert (await said(served, task, "cancel", reason="late")).body["code"] == "TASK_ENDED"
    steps = [step["what"] for step in (await served.get(f"/tasks/{task}")).body["timeline"]]
    assert steps == [
        "opened", "searched", "offered", "rejected", "offered", "accepted", "released", "offered", "accepted",
        "completed",
    ]  # fmt: skip


async def test_answers_are_hot_and_in_the_same_openapi(served):
    hot = {(route.method, route.path) for route in routes(served.ulak).hot}
    paths = (await served.get("/openapi.json")).body["paths"]
    for verb in ("accept", "reject", "complete", "release", "cancel"):
        path = f"/tasks/{{task}}/{verb}"
        assert ("PUT", path) in hot
        told = paths[path]["put"]
        answered = told["responses"]["200"]["content"]["application/json"]["schema"]
        assert answered == {"$ref": "#/components/schemas/HelpTaskOut"}
        assert told["requestBody"]["required"] is (verb != "cancel")
        assert (await served.ask("POST", f"/tasks/{UNKNOWN}/{verb}", {})).status == 405
        assert fields(await said(served, "nope", verb, helperId="ahmet")) == {"task"}


async def test_a_cancelled_task_can_not_be_answered(served):
    task = (await opened(served))["id"]
    assert (await served.ask("PUT", f"/tasks/{task}/cancel")).body["status"] == "CANCELLED"
    assert (await said(served, task, "cancel", reason="again")).status == 200
    assert (await said(served, task, "accept", helperId="ahmet")).body["code"] == "TASK_CANCELLED"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"latitude": 91}, {"latitude"}),
        ({"longitude": -181}, {"longitude"}),
        ({"latitude": "41"}, {"latitude"}),
        ({"radiusMeters": 0}, {"radiusMeters"}),
        ({"radiusMeters": 50_001}, {"radiusMeters"}),
        ({"deadlineSeconds": 0}, {"deadlineSeconds"}),
        ({"deadlineSeconds": 86_401}, {"deadlineSeconds"}),
        ({"width": 0}, {"width"}),
        ({"width": 51, "latitude": 91, "colour": 1}, {"width", "latitude", "colour"}),
        ({"latitude": None, "category": None}, {"latitude", "category"}),
        ({"contact": {"notificationType": "PIGEON", "recipient": "x"}}, {"contact.notificationType"}),
        ({"contact": {"notificationType": "EMAIL", "recipient": "x"}}, {"contact.recipient"}),
        ({"contact": {"notificationType": "EMAIL"}}, {"contact.recipient"}),
        ({"language": "de"}, {"language"}),
        (
            {"latitude": 91, "contact": {"notificationType": "PIGEON", "recipient": "x"}},
            {"latitude", "contact.notificationType"},
        ),
    ],
)
async def test_bad_tasks_are_refused_field_by_field(served, change, named):
    answer = await served.post("/tasks", TASK | change)
    assert (answer.status, fields(answer)) == (400, named)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
async def test_what_is_not_finite_is_refused_by_its_field(served, number):
    body = json.dumps(TASK).replace("41.0", number)
    answer = await served.post("/tasks", data=body)
    assert (answer.status, fields(answer)) == (400, {"latitude"})


@pytest.mark.parametrize("field", ["requesterId", "category", "description"])
async def test_half_of_a_surrogate_pair_is_refused_as_not_json(served, field):
    body = json.dumps(TASK | {field: "HALF"}).replace("HALF", r"\ud800")
    answer = await served.post("/tasks", data=body)
    assert (answer.status, fields(answer)) == (400, {"body"})


async def test_a_nul_is_refused_by_its_field_on_every_store(served):
    task = (await opened(served))["id"]
    assert fields(await served.post("/tasks", TASK | {"description": "a\0b"})) == {"description"}
    assert fields(await said(served, task, "cancel", reason="\0")) == {"reason"}
    assert fields(await said(served, task, "release", helperId="ahmet", reason="a\n\0")) == {"reason"}
    assert (await said(served, task, "cancel", reason="two\nlines\n")).body["reason"] == "two\nlines\n"


async def test_a_number_that_no_float_can_hold_is_refused_in_words(served):
    answer = await served.post("/tasks", data=json.dumps(TASK | {"radiusMeters": 10**400}))
    assert answer.body["fields"] == [{"field": "radiusMeters", "message": "must be a number that is not too large"}]


async def test_a_bad_helper_is_refused_naming_each_field_once(served):
    contact = {"notificationType": "EMAIL", "recipient": "x"}
    answer = await served.ask("PUT", "/helpers/x", {"latitude": 91, "longitude": 1, "contact": contact, "colour": 1})
    named = [one["field"] for one in answer.body["fields"]]
    assert (answer.status, sorted(named)) == (400, ["colour", "contact.recipient", "latitude"])
    assert (await served.get("/helpers/x")).status == 404


async def test_other_bad_input_is_refused(served):
    task = (await opened(served))["id"]
    assert fields(await served.ask("PUT", "/helpers/x", {"latitude": 1})) == {"longitude"}
    assert fields(await said(served, task, "accept")) == {"helperId"}
    assert fields(await said(served, task, "accept", helperId="a b")) == {"helperId"}
    assert (await said(served, task, "accept", helperId="nobody")).status == 404
    nowhere = await said(served, UNKNOWN, "accept", helperId="ahmet")
    assert (nowhere.status, UNKNOWN in nowhere.body["message"]) == (404, True)
    assert (await served.get(f"/tasks/{UNKNOWN}")).status == 404
    assert (await served.get("/tasks/nope")).status == 400
    assert (await served.ask("PUT", "/helpers/" + "a" * 101, {})).status == 400
    assert (await served.get("/helpers/nobody")).status == 404
    assert fields(await served.get("/helpers?bbox=1,2,3")) == {"bbox"}
    assert fields(await served.get("/helpers?status=ASLEEP")) == {"status"}
    assert fields(await served.get("/tasks?status=ASLEEP")) == {"status"}


async def test_a_helper_with_an_offer_is_not_deleted(served):
    await opened(served)
    assert (await served.ask("DELETE", "/helpers/ahmet")).status == 409
    assert (await served.ask("DELETE", "/helpers/can")).status == 204
    assert (await served.ask("DELETE", "/helpers/can")).status == 404


async def test_positions_one_by_one_and_in_bulk(served):
    moved = await served.ask("PUT", "/helpers/ahmet/position", {"latitude": 40.5, "longitude": 29.5})
    assert (moved.status, moved.body["latitude"]) == (200, 40.5)
    assert (await served.ask("PUT", "/helpers/nobody/position", {"latitude": 1, "longitude": 1})).status == 404
    many = [{"id": "berat", "latitude": 40.7, "longitude": 29.1}, {"id": "nobody", "latitude": 1, "longitude": 1}]
    taken = await served.post("/helpers/positions", many)
    assert (taken.status, taken.body) == (202, {"accepted": 1, "unknown": ["nobody"]})
    await served.ulak.dispatch.flush_positions()
    assert (await served.get("/helpers/berat")).body["latitude"] == 40.7
    wrong = await served.post("/helpers/positions", [many[0], {"id": "can", "latitude": 99, "longitude": 1}])
    assert (wrong.status, fields(wrong)) == (400, {"[1].latitude"})
    assert fields(await served.post("/helpers/positions", [many[0], 1])) == {"[1]"}


@pytest.mark.parametrize("again", [b'"id"', b'"\\u0069d"'])
async def test_a_position_that_gives_a_key_twice_is_refused_however_it_is_spelt(served, again):
    body = b'[{"id": "can", %s: "berat", "latitude": 41, "longitude": 29}]' % again
    twice = await served.post("/helpers/positions", data=io.BytesIO(body))
    assert (twice.status, fields(twice)) == (400, {"id"})
    escaped = await served.post("/helpers/positions", data=io.BytesIO(body.replace(b'"id": "can", ', b"")))
    assert (escaped.status, escaped.body["accepted"]) == (202, 1)


async def test_bulk_positions_have_their_own_bounds(served):
    one = {"id": "ahmet", "latitude": 41.123456789, "longitude": 29.123456789}
    padded = [one | {"id": "ahmet"}] * 10_000
    assert len(json.dumps(padded)) < 4 * 1024 * 1024
    assert (await served.post("/helpers/positions", padded)).status == 202
    assert (await served.post("/helpers/positions", [*padded, one])).status == 400
    large = await served.post("/helpers/positions", data=io.BytesIO(b"[" + b" " * (4 * 1024 * 1024) + b"]"))
    assert large.status == 413
    assert "the route's own bound" in large.body["message"]  # http.max_body_bytes does not hold here


async def test_lists_go_on_with_after(served):
    page = (await served.get("/helpers?limit=2")).body
    assert ([one["id"] for one in page["items"]], page["next"]) == (["ahmet", "berat"], "berat")
    page = (await served.get("/helpers?limit=2&after=berat")).body
    assert ([one["id"] for one in page["items"]], page["next"]) == (["can"], None)
    tasks = [(await opened(served))["id"] for _ in range(3)]
    page = (await served.get("/tasks?limit=2&status=OFFERED&requesterId=ayse")).body
    assert [one["id"] for one in page["items"]] == tasks[:0:-1]
    page = (await served.get(f"/tasks?limit=2&after={page['next']}")).body
    assert [one["id"] for one in page["items"]] == tasks[:1]
    assert (await served.get("/helpers?bbox=28.9,40.9,29.1,41.0005")).body["items"][0]["id"] == "ahmet"


async def test_an_idempotency_key_opens_one_task(served):
    key = {"Idempotency-Key": "call-1"}
    first, again = [await served.post("/tasks", TASK, headers=key) for _ in range(2)]
    assert (first.status, again.status, first.body["id"]) == (201, 201, again.body["id"])
    other = await served.post("/tasks", TASK | {"category": "other"}, headers=key)
    assert other.status == 409


async def test_explain_and_fairness_are_told(served):
    task = (await opened(served, skills=["violin"]))["id"]
    found = (await served.get(f"/tasks/{task}/explain")).body
    assert found["searches"][0]["counts"] == {"skills": 3}
    assert found["searches"][0]["excluded"][0] == {"helperId": "ahmet", "reason": "skills"}
    task = (await opened(served))["id"]
    ranked = (await served.get(f"/tasks/{task}/explain")).body["searches"][0]["ranked"]
    assert ranked[1].keys() == {
        "place", "helperId", "distanceMeters", "completedThisMonth", "timeoutsInRow", "reason"
    }  # fmt: skip
    figures = (await served.get("/api/dispatch/fairness")).body
    assert (figures["helpers"], figures["gini"]) == (3, 0.0)


async def test_a_stream_tells_offers_and_their_ends_and_can_be_resumed(served):
    task = (await opened(served))["id"]
    first = await read_events(served, "/helpers/ahmet/offers/stream", 1)
    assert (first[0]["event"], json.loads(first[0]["data"]).keys()) == ("offer", OFFER)
    await said(served, task, "reject", helperId="ahmet")
    second = (await opened(served))["id"]
    news = await read_events(served, "/helpers/ahmet/offers/stream", 2, first[0]["id"])
    assert [one["event"] for one in news] == ["closed", "offer"]
    assert json.loads(news[0]["data"])["how"] == "rejected"
    assert json.loads(news[1]["data"])["taskId"] == second
    assert (await served.get("/helpers/nobody/offers/stream")).status == 404


async def read_events(served, path: str, number: int, last: str | None = None) -> list[dict[str, str]]:
    headers = {} if last is None else {"Last-Event-ID": last}
    found: list[dict[str, str]] = []
    async with asyncio.timeout(20), served.session.get(served.address + path, headers=headers) as answer:
        event: dict[str, str] = {}
        while len(found) < number:
            line = (await answer.content.readline()).decode().rstrip("\n")
            if line.startswith(":"):
                continue
            if line:
                name, _, value = line.partition(": ")
                event[name] = value
            elif event:
                found.append(event)
                event = {}
    return found
