"""The examples run as they are written."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ulak.testing import drain

EXAMPLES = Path(__file__).parents[2] / "examples"
LIMIT_SECONDS = 60


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("ULAK_STORE", "ULAK_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def load(name, monkeypatch):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


async def work(ulak):
    """As `ulak worker --app` would, until nothing waits."""
    async with ulak:
        await drain(ulak)
        return await ulak.jobs.list(limit=10)


async def ask(app, method, path, document=None):
    """One request to an ASGI application."""
    body = b"" if document is None else json.dumps(document).encode()
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    sent = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], json.loads(b"".join(one.get("body", b"") for one in sent[1:]))


async def test_fastapi(monkeypatch):
    shop = load("fastapi_shop", monkeypatch)
    async with shop.app.router.lifespan_context(shop.app):
        status, accepted = await ask(shop.app, "POST", "/orders", {"number": 7, "address": "Kadıköy"})
        assert status == 202
        assert (await ask(shop.app, "POST", "/orders", {"number": "seven"}))[0] == 422
        await drain(shop.ulak)
        assert isinstance(accepted["job"], str)  # an id has more digits than a number of JavaScript
        status, seen = await ask(shop.app, "GET", f"/orders/{accepted['job']}")
        assert (status, seen["status"]) == (200, "done")
        assert "on its way to Kadıköy" in seen["detail"]
        assert (await ask(shop.app, "GET", "/orders/7"))[0] == 404


def test_flask(monkeypatch):
    shop = load("flask_shop", monkeypatch)
    client = shop.app.test_client()
    answer = client.post("/orders", json={"number": 7})
    assert answer.status_code == 202
    assert client.post("/orders", json={"number": 7}).json == answer.json
    assert client.get(f"/orders/{answer.json['job']}").json == {"status": "ready"}
    shop.client().__exit__(None, None, None)
    [record] = asyncio.run(work(shop.worker))
    assert (record.status, record.id) == ("done", int(answer.json["job"]))


def test_django(monkeypatch):
    shop = load("django_shop", monkeypatch)
    from django.test import Client

    client = Client()
    answer = client.post("/orders", json.dumps({"number": 7}), content_type="application/json")
    assert answer.status_code == 202
    job = json.loads(answer.content)["job"]
    assert json.loads(client.get(f"/orders/{job}").content) == {"status": "ready"}
    shop.client().__exit__(None, None, None)
    [record] = asyncio.run(work(shop.worker))
    assert (record.status, record.id) == ("done", int(job))


def test_script(tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "script.py"), "4"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(line for line in done.stdout.splitlines() if line.startswith("letter")) == [
        f"letter {number}" for number in range(1, 5)
    ]


async def test_notebook():
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))
    names = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells):
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = compile("".join(cell["source"]), f"cell {number}", "exec", flags=flags, dont_inherit=True)
        answer = eval(code, names)
        if inspect.isawaitable(answer):
            await answer
    assert names["record"].status == "done"
    assert names["refused"] == [("payload.number", "must be a whole number, not text")]
    assert names["counts"] == [168, 303, 430]
    assert [cell["outputs"] for cell in cells] == [[]] * len(cells)


def test_every_example_is_in_the_list():
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    files = [file.name for file in EXAMPLES.iterdir() if file.suffix in {".py", ".ipynb"}]
    assert [name for name in sorted(files) if f"({name})" not in listed] == []
