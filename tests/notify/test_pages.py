"""The room's pages say what the code does: the examples run, and every field, status and setting is named."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import msgspec
import pytest

from ulak.notify.model import Request, Status
from ulak.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = (DOCS / "reference/notify.md").read_text(encoding="utf-8")
PAGES = [
    "tutorial/first-notification",
    "howto/send-mail",
    "howto/send-webhooks",
    "howto/use-the-inbox",
    "howto/use-templates",
]
BODIES = [
    (page, body)
    for page in PAGES
    for body in re.findall(r"-d '(\{.*?\})'", (DOCS / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    if "PIGEON" not in body
]


@pytest.mark.parametrize("name", [field.encode_name for field in msgspec.structs.fields(Request)])
def test_every_field_is_documented(name):
    assert f"`{name}`" in REFERENCE


@pytest.mark.parametrize("status", Status)
def test_every_status_is_documented(status):
    assert f"| {status} |" in REFERENCE


@pytest.mark.parametrize(("page", "body"), BODIES)
async def test_every_request_on_the_pages_is_acceptable(make_in_memory, page, body):
    async with make_in_memory(work=False) as ulak:
        assert (
            await ulak.notify.accept(ulak.notify.decode(json.dumps(json.loads(body)).encode()))
        ).status == "ACCEPTED"


def test_every_setting_on_the_pages_exists():
    for page in (*PAGES, "reference/notify", "explanation/delivery"):
        text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
        for section, name in re.findall(r"`(notify|channels\.\w+)\.(\w+)`", text):
            place = Settings()
            for part in section.split("."):
                place = getattr(place, part)
            assert hasattr(place, name), f"{section}.{name} on {page}"


async def test_the_tutorials_program_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(
        r"```python\n(.*?)```", (DOCS / "tutorial/first-notification.md").read_text("utf-8"), re.DOTALL
    )
    await asyncio.to_thread(exec, code, {"__name__": "tutorial"})
    assert (tmp_path / "first.db").exists()
