"""Every error of ours has one answer, on hot routes and on the others alike; the unexpected shows nothing."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
import pytest_asyncio
from fastapi import APIRouter

from tests.api.serving import serving
from ulak import codec, errors
from ulak.http import app
from ulak.http.hot_routes import HotRoute, Routes, reply
from ulak.http.routes.jobs import JobAccepted, JobRequest

SECRET = "postgresql://ulak:hunter2hunter2@db/ulak"
ERRORS = [
    (errors.Invalid("wrong", fields=[("delay_seconds", "must be more")]), 400, "invalid"),
    (errors.NotFound("no such job"), 404, "not_found"),
    (errors.Gone(), 410, "gone"),
    (errors.Conflict("already done"), 409, "conflict"),
    (errors.Duplicate("held"), 409, "conflict"),
    (errors.IllegalTransition("over already"), 409, "conflict"),
    (errors.Refused("full", retry_after_seconds=7), 429, "refused"),
    (errors.Unavailable("no database"), 503, "unavailable"),
    (errors.Misconfigured("no lane"), 500, "misconfigured"),
    (errors.Permanent("a handler's own"), 500, "internal"),
    (RuntimeError(SECRET), 500, "internal"),
]
IDS = [type(error).__name__ for error, _, _ in ERRORS]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def raising():
    """A server with routes that raise what they are told, one in front and one in FastAPI."""
    told: list[Exception] = []

    async def hot(scope, receive, send, caller):
        raise told[0]

    async def cool():
        raise told[0]

    async def shelf(scope, receive, send, caller):
        return await reply(send, 202, codec.encode(scope["path_params"]))

    def room(ulak):
        router = APIRouter()
        router.add_api_route("/cool", cool, methods=["POST"])
        route = HotRoute("POST", "/hot", hot, "jobs", "Raises", JobRequest, JobAccepted)
        book = HotRoute("PUT", "/shelves/{shelf}/books/{book}", shelf, "jobs", "Takes", None, dict[str, str])
        return Routes(hot=(route, book), routers=(router,))

    async with contextlib.AsyncExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(app, "OWN", (room,))
            served = await stack.enter_async_context(serving())

        async def post(path, error):
            told[:] = [error]
            return await served.post(path, {})

        post.served = served
        yield post


@pytest.mark.parametrize("path", ["/hot", "/cool"])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_conflict_can_say_which_one_it_is(raising, path):
    answer = await raising(path, errors.IllegalTransition("too late", code="OFFER_EXPIRED"))
    assert answer.status == 409
    assert answer.body == {"error": "conflict", "message": "too late", "code": "OFFER_EXPIRED"}


@pytest.mark.parametrize("path", ["/hot", "/cool"])
@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_gone_says_where_to_begin_anew(raising, path):
    answer = await raising(path, errors.Gone("pruned", extra={"oldest": 7, "bootstrap": "/all"}, location="/all"))
    assert answer.status == 410
    assert answer.body == {"error": "gone", "message": "pruned", "oldest": 7, "bootstrap": "/all"}
    assert answer.headers["Location"] == "/all"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_hot_route_can_have_parameters_in_its_path(raising):
    served = raising.served
    answer = await served.ask("PUT", "/shelves/a%20b/books/7")
    assert (answer.status, answer.body) == (202, {"shelf": "a b", "book": "7"})
    for elsewhere in ("/shelves/a/books/", "/shelves/a/books/7/8", "/shelves/a/pens/7"):
        assert (await served.ask("PUT", elsewhere)).status == 404
    refused = await served.get("/shelves/a/books/7")
    assert (refused.status, refused.headers["Allow"]) == (405, "PUT")
    operation = served.door.api.openapi()["paths"]["/shelves/{shelf}/books/{book}"]["put"]
    assert [one["name"] for one in operation["parameters"]] == ["shelf", "book"]
    assert "requestBody" not in operation


@pytest.mark.parametrize("path", ["/hot", "/cool"])
@pytest.mark.parametrize(("error", "status", "code"), ERRORS, ids=IDS)
@pytest.mark.asyncio(loop_scope="module")
async def test_an_error_has_its_answer(raising, error, status, code, path):
    answer = await raising(path, error)
    assert (answer.status, answer.body["error"]) == (status, code)
    assert ("Retry-After" in answer.headers) == (status in {429, 503})


@pytest.mark.asyncio(loop_scope="module")
async def test_a_refusal_says_when_to_come_back(raising):
    assert (await raising("/hot", errors.Refused("full", retry_after_seconds=7))).headers["Retry-After"] == "7"


@pytest.mark.parametrize("path", ["/hot", "/cool"])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_field_is_named_as_the_error_names_it(raising, path):
    answer = await raising(path, ERRORS[0][0])
    assert answer.body["fields"] == [{"field": "delay_seconds", "message": "must be more"}]


FINE = {"notificationType": "SMS", "recipient": "+905551112233", "body": "x"}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/api/compute/tasks", {"params": {}}, "script_path"),
        ("/api/compute/tasks", {"script_path": "a.py", "max_retries": -1}, "max_retries"),
        ("/api/compute/tasks", {"script_path": "a.py", "timeout_seconds": 0}, "timeout_seconds"),
        ("/api/compute/tasks/batch", [{"script_path": "a.py", "task_type": "fast"}], "0.task_type"),
        ("/api/jobs", {"kind": "a", "delay_seconds": 1}, "delay_seconds"),
        ("/api/jobs", {"kind": "a", "uniqueKey": "\0"}, "uniqueKey"),
        ("/api/dead/redrive", {"ratePerSecond": 0}, "ratePerSecond"),
        ("/api/notifications", {"notification_type": "SMS", **FINE}, "notification_type"),
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_the_field_that_is_named_is_the_field_that_was_sent(shared, path, body, field):
    key = await shared.make_key("compute", "jobs", "notify")
    answer = await shared.post(path, body, key=key)
    assert answer.status == 400
    assert [one["field"] for one in answer.body["fields"]] == [field]


@pytest.mark.parametrize("path", ["/hot", "/cool"])
@pytest.mark.asyncio(loop_scope="module")
async def test_the_unexpected_shows_nothing_of_the_inside(raising, path):
    answer = await raising(path, RuntimeError(SECRET))
    assert "hunter2" not in answer.text
    assert "RuntimeError" not in answer.text


@pytest.mark.asyncio(loop_scope="module")
async def test_personal_data_in_a_message_is_masked(raising):
    assert "ayse" not in (await raising("/hot", errors.Conflict("ayse@example.com has one already"))).text


@pytest.mark.asyncio(loop_scope="module")
async def test_what_fastapi_refuses_has_the_same_shape(shared):
    wrong = await shared.get("/api/jobs?limit=0")
    assert (wrong.status, wrong.body["error"]) == (400, "invalid")
    assert wrong.body["fields"][0]["field"] == "limit"
    missing = await shared.get("/nowhere")
    assert (missing.status, missing.body["error"]) == (404, "not_found")
    method = await shared.ask("PATCH", "/api/jobs")
    assert (method.status, method.body["error"]) == (405, "method_not_allowed")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{}", "kind"),
        (b'{"kind": 1}', "kind"),
        (b'{"kind": "a", "slots": 0}', "slots"),
        (b'{"kind": "a", "dueAt": "2027-01-01T00:00:00"}', "dueAt"),
        (b'{"kind": "a", "dueAt": "9999-01-01T00:00:00Z"}', "dueAt"),
        (b'{"kind": "a", "colour": 1}', "colour"),
        (b'{"kind": "a", "delaySeconds": 1e300}', "delaySeconds"),
        (b'{"kind": "a", "delaySeconds": 1, "dueAt": "2027-01-01T00:00:00Z"}', "delaySeconds"),
        (b'{"kind": ""}', "kind"),
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_wrong_field_is_named(body, field, shared):
    answer = await shared.post("/api/jobs", data=body)
    assert answer.status == 400
    assert [one["field"] for one in answer.body["fields"]] == [field]


@pytest.mark.parametrize(
    "body", [b"", b"[", b"null", b"[]", b'{"kind": "a", "payload": "\xff"}', b"[" * 50_000, b'{"kind": "\\ud800"}']
)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_body_that_can_not_be_read_is_the_callers_fault(body, shared):
    assert (await shared.post("/api/jobs", data=body)).status == 400


BODIES = [
    ("/api/jobs", {"kind": "mail"}, 202),
    ("/api/notifications", {"notificationType": "SMS", "recipient": "+905551112233", "body": "hello"}, 202),
    ("/api/notifications/batch", [{"notificationType": "SMS", "recipient": "+905551112233", "body": "hello"}], 207),
    ("/api/dead/redrive", {"all": True, "dryRun": True}, 200),
    ("/api/breakers/reset", {"all": True}, 200),
    ("/api/keys", {"name": "shop", "scopes": ["notify"]}, 201),
    ("/api/webhook-endpoints", {"url": "https://example.com/hook"}, 201),
    ("/api/db/backup", {"name": "monday.db"}, 409),  # a store in memory has none, and that is read first
]


@pytest.mark.parametrize("called", ["application/x-www-form-urlencoded", "text/plain", "application/json", None])
@pytest.mark.parametrize(("path", "body", "status"), BODIES, ids=[path for path, *_ in BODIES])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_body_is_json_whatever_it_is_called(shared, path, body, status, called):
    """`curl -d` calls it a form."""
    headers = {} if called is None else {"content-type": called}
    skipped = ["content-type"] if called is None else None
    key = await shared.make_key("admin")
    async with shared.session.post(
        shared.address + path,
        data=msgspec.json.encode(body),
        headers={"authorization": f"Bearer {key}", **headers},
        skip_auto_headers=skipped,
    ) as answer:
        assert answer.status == status, await answer.text()


UUID = "must be a UUID, like 0ca0d6db-9140-8000-8000-0000756c616b"
INSTANT = "must be an instant with a time zone, like 2027-01-01T09:00:00Z"
ID = "must be an id or a cursor: a whole number of at most 19 digits"
SENTENCES = [
    ("POST /api/jobs", {}, "kind", "is required"),
    ("POST /api/jobs", {"kind": ""}, "kind", "must be text of at least 1 characters"),
    ("POST /api/jobs", {"kind": 1}, "kind", "must be text, not a whole number"),
    ("POST /api/jobs", {"kind": "a", "slots": 0}, "slots", "must be a whole number, at least 1"),
    ("POST /api/jobs", {"kind": "a", "delaySeconds": 1e300}, "delaySeconds", "must be a number, at most 315,360,000"),
    ("POST /api/jobs", {"kind": "a", "priority": "x"}, "priority", "must be one of URGENT, HIGH, NORMAL, LOW"),
    ("POST /api/jobs", {"kind": "a", "dueAt": "soon"}, "dueAt", INSTANT),
    ("POST /api/jobs", {"kind": "a", "dueAt": "2027-01-01T00:00:00"}, "dueAt", INSTANT),
    ("POST /api/jobs", [], "body", "must be a JSON object"),
    ("POST /api/jobs", {"kind": "\0"}, "kind", "must have 1 to 100 characters, no NUL and no lone surrogate"),
    ("POST /api/notifications", {**FINE, "recipient": 1}, "recipient", "must be text or null, not a whole number"),
    ("POST /api/keys", {"name": "\n", "scopes": ["jobs"]}, "name", "must have 1 to 100 printable characters"),
    ("POST /api/dead/redrive", {"ids": ["x"]}, "ids.0", ID),
    ("POST /api/dead/redrive", {"ratePerSecond": 1e9}, "ratePerSecond", "must be at most 10,000"),
    ("POST /api/dead/redrive", {"colour": 1}, "colour", "is not a field here"),
    ("PATCH /api/kinds/notify.sms", [], "body", "must be an object"),
    ("PATCH /api/kinds/notify.sms", {"paused": "yes"}, "paused", "must be true or false"),
    ("PATCH /api/kinds/notify.sms", {"concurrency": 0}, "concurrency", "must be at least 1"),
    ("PATCH /api/kinds/notify.sms", {"concurrency": 1.5}, "concurrency", "must be a whole number"),
    ("POST /api/keys", {"name": 1, "scopes": ["jobs"]}, "name", "must be text"),
    ("POST /api/keys", {"name": "a", "scopes": "jobs"}, "scopes", "must be a list"),
    ("GET /api/audit?limit=many", ..., "limit", "must be a whole number"),
    ("GET /api/jobs/abc", ..., "id", "must be the id of a job: a whole number or a UUID"),
    ("GET /api/notifications/abc", ..., "identifier", UUID),
    ("GET /api/dead?diedBefore=soon", ..., "diedBefore", INSTANT),
    ("GET /api/events?after=99999999999999999", ..., "after", "must be at most 9,007,199,254,740,992"),
]


@pytest.mark.parametrize(("asked", "body", "field", "message"), SENTENCES)
@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_wrong_with_a_field_is_a_sentence(shared, asked, body, field, message):
    answer = await shared.ask(*asked.split(), body)
    assert answer.status == 400
    assert answer.body["fields"] == [{"field": field, "message": message}]


@pytest.mark.parametrize(("path", "field"), [("/api/jobs", "body"), ("/api/keys", "body"), ("/api/notifications", "")])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_body_that_is_no_json_is_told_so(shared, path, field):
    """A notification has a field of the name body."""
    answer = await shared.post(path, data=b"{oops")
    assert answer.status == 400
    (told,) = answer.body["fields"]
    assert told["field"] == field
    assert "JSON" in told["message"]


@pytest.mark.parametrize("path", ["/api/jobs", "/api/notifications", "/api/actions/requests", "/tasks"])
@pytest.mark.parametrize(("data", "why"), [(b'{"x":1', "truncated"), (b'{"x":"\\ud800"}', "half of a character")])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_body_that_is_no_json_is_told_what_is_broken_in_it(shared, path, data, why):
    answer = await shared.post(path, data=data)
    assert answer.status == 400
    assert "is not JSON" in answer.body["message"]
    assert why in answer.body["message"]


@pytest.mark.asyncio(loop_scope="module")
async def test_all_wrong_fields_of_a_job_are_named_at_once(shared):
    answer = await shared.post("/api/jobs", {"kind": 5, "priority": "x", "slots": "a", "dueAt": "soon", "colour": 1})
    assert {told["field"] for told in answer.body["fields"]} == {"kind", "priority", "slots", "dueAt", "colour"}
    assert "slots must be a whole number" in answer.body["message"]


@pytest.mark.asyncio(loop_scope="module")
async def test_the_url_of_an_endpoint_is_named_as_it_was_sent(shared):
    for verb, more in (("test", {}), ("replay", {"since": "2027-01-01T00:00:00Z"})):
        answer = await shared.post(f"/api/webhook-endpoints/{verb}", {"url": "ftp://h/", **more})
        assert [told["field"] for told in answer.body["fields"]] == ["url"]


TWICE = {
    "POST /api/jobs": ('{"kind":"a","kind":"b"}', "kind"),
    "POST /api/keys": ('{"name":"a","scopes":["jobs"],"name" : "b"}', "name"),
    "POST /api/notifications": ('{"notificationType":"IN_APP","recipient":"a","body":"b","body":"c"}', "body"),
    "POST /api/actions/requests": (
        '{"data":{"evaluation_key":"a","evaluation_key":"b","action_plan_id":1}}',
        "evaluation_key",
    ),
    "POST /tasks": ('{"requesterId":"a","requesterId":"b","category":"c","latitude":1,"longitude":1}', "requesterId"),
    "POST /helpers/positions": ('[{"id":"a","id":"b","latitude":1,"longitude":1}]', "id"),
    "PUT /helpers/ahmet": ('{"name":"a","n\\u0061me":"b"}', "name"),
    "POST /api/dead/redrive": ('{"dryRun":true,"dryRun":false}', "dryRun"),
}


@pytest.mark.parametrize("asked", TWICE)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_key_that_an_object_has_twice_is_refused_by_name(shared, asked):
    body, key = TWICE[asked]
    answer = await shared.ask(*asked.split(), data=body.encode())
    assert (answer.status, answer.body["error"]) == (400, "invalid")
    assert {"field": key, "message": "is given more than once"} in answer.body["fields"]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_scope_that_is_none_is_answered_with_those_that_are(shared):
    (told,) = (await shared.post("/api/keys", {"name": "a", "scopes": ["foo"]})).body["fields"]
    assert all(scope in told["message"] for scope in shared.door.scopes.texts)


UNKNOWN_KEYS = [
    (
        "GET /api/jobs?stauts=dead",
        "stauts",
        "there are: acceptedAfter, acceptedBefore, before, key, kind, limit, status",
    ),
    ("GET /api/dead?error_class=permanent", "error_class", "errorClass"),
    ("GET /api/notifications?type=SMS", "type", "notificationType"),
    ("GET /api/inbox/ada?read=false", "read", "there are: before, limit, unread"),
    ("GET /api/breakers?all=true", "all", "this route has none"),
    ("GET /metrics?kind=mail", "kind", "this route has none"),
    ("POST /api/jobs?dryRun=true", "dryRun", "this route has none"),
    ("POST /api/dead/redrive?dryRun=true", "dryRun", "this route has none"),
    ("POST /api/db/resume?dryRun", "dryRun", "this route has none"),
    ("DELETE /api/dead/1?dryRun=true", "dryRun", "this route has none"),
]


@pytest.mark.parametrize("path", ["/api/jobs?key=a%00b", "/tasks?helperId=%00", "/api/dead?cause=%00"])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_nul_in_the_query_is_refused_by_its_key(shared, path):
    answer = await shared.get(path)
    assert answer.status == 400
    assert [field["field"] for field in answer.body["fields"]] == [path.partition("?")[2].partition("=")[0]]


@pytest.mark.parametrize(("asked", "name", "known"), UNKNOWN_KEYS)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_query_key_that_a_route_does_not_know_is_refused_with_those_that_it_knows(shared, asked, name, known):
    answer = await shared.ask(*asked.split(), {"kind": "mail", "all": True} if asked.startswith("POST") else ...)
    assert answer.status == 400
    (told,) = answer.body["fields"]
    assert told["field"] == name
    assert known in told["message"]


@pytest.mark.parametrize("probe", ["/healthz", "/readyz"])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_probe_is_answered_whatever_is_added_to_it(shared, probe):
    assert (await shared.get(f"{probe}?at=1")).status == 200


@pytest.mark.parametrize("path", ["/api/webhook-endpoints", "/api/webhook-endpoints/forget"])
@pytest.mark.asyncio(loop_scope="module")
async def test_an_endpoint_with_a_misspelt_field_is_refused(shared, path):
    answer = await shared.post(path, {"url": "https://example.com/hook", "secert": "whsec_x"})
    assert [one["field"] for one in answer.body["fields"]] == ["secert"]


@pytest.mark.parametrize("secret", ["bad", "whsec_", "whsec_!!", "whsk_YQ==", "whpk_YQ=="])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_secret_that_is_none_is_told_by_its_field(shared, secret):
    answer = await shared.post("/api/webhook-endpoints", {"url": "https://example.com/hook", "secret": secret})
    assert (answer.status, [one["field"] for one in answer.body["fields"]]) == (400, ["secret"])


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/api/notifications", "GET, POST"),
        ("DELETE", "/api/jobs", "GET, POST"),
        ("GET", "/api/notifications/batch", "POST"),
        ("DELETE", "/api/notifications/batch", "POST"),
        ("PUT", "/api/keys", "GET, POST"),
        ("DELETE", "/api/dead/causes", "GET"),
        ("PATCH", "/api/actions/dead-letters/causes", "GET"),
        ("PUT", "/api/actions/plans/export", "GET"),
        ("OPTIONS", "/api/compute/tasks/batch", "POST"),
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_method_that_is_not_allowed_is_told_all_that_are(shared, method, path, allowed):
    answer = await shared.ask(method, path)
    assert (answer.status, answer.headers["Allow"]) == (405, allowed)


@pytest.mark.parametrize("value", [0, "false", "no", "off", 1])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_redrive_takes_only_true_or_false_for_its_dry_run(shared, value):
    answer = await shared.post("/api/dead/redrive", {"all": True, "dryRun": value})
    assert (answer.status, answer.body["fields"][0]["field"]) == (400, "dryRun")


@pytest.mark.parametrize("instant", ["0.5", "17", "2026-01-01"])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_number_is_not_an_instant(shared, instant):
    assert (await shared.get(f"/api/dead?diedBefore={instant}")).status == 400
