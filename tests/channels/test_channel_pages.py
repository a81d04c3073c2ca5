"""The pages about channels and templates say what the code does."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from ulak.channels import channel
from ulak.channels.registry import BUILT_IN
from ulak.channels.signature import Secret, sign
from ulak.templates.sandbox import Caps, Sandbox
from ulak.templates.template import Templates

DOCS = Path(__file__).parents[2] / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def test_every_built_in_channel_is_documented():
    text = page("reference/channels.md")
    assert [point.name for point in BUILT_IN if f"| `{point.name}` |" not in text] == []


def test_the_page_says_what_each_channel_does_with_a_messages_fields():
    """Every module that delivers has a row: of `target_meta` the keys that it reads, and where a time to live goes."""
    table = page("reference/channels.md").partition("| channel | `target_meta` |")[2].partition("\n\n")[0]
    told = {name: (cells, "time to live" in cells) for name, cells in re.findall(r"\n\| `(\w+)` \| (.*)", table)}
    sources = {path.stem: path.read_text("utf-8") for path in Path(channel.__file__).parent.glob("*.py")}
    delivering = {name: text for name, text in sources.items() if " = seconds_for(" in text or "(seconds_for(" in text}
    assert told.keys() == delivering.keys()
    for name, text in delivering.items():
        cells, has_time_to_live = told[name]
        keys = re.findall(r"`(\w+)`", cells.partition("|")[0])
        assert bool(keys) == ("message.target_meta" in text), name
        assert [key for key in keys if f'.get("{key}")' not in text] == [], name
        assert has_time_to_live == ("message.seconds_left" in text), name
        assert cells.count("ends the attempt") == 2, name


def test_every_filter_and_every_built_in_template_is_documented():
    text = page("reference/templates.md")
    templates = Templates()
    templates.load()
    filters = [name for name in Sandbox("en", html=False, caps=Caps()).filters if " " not in name]
    documented = re.findall(r"`(\w+)", text)
    assert {*filters, *templates.names} <= set(documented)


def test_the_documented_bounds_are_the_real_ones():
    text, caps = page("reference/templates.md"), Caps()
    for number in (caps.template_chars, caps.nodes, caps.variables_bytes, caps.output_chars, caps.steps):
        assert f"{number:,}" in text
    assert caps.seconds == 0.25


def test_the_receiver_of_the_how_to_accepts_ours_and_nothing_else():
    [code] = re.findall(r"```python\n(.*?)```", page("howto/verify-a-webhook.md"), re.DOTALL)
    names: dict = {}
    exec(code, names)
    headers = sign(names["SECRETS"], "msg_1", datetime.now(UTC), b"{}")
    assert names["read_hook"](headers, b"{}") == "msg_1"
    assert names["read_hook"](headers, b"{ }") is None
    assert isinstance(names["SECRETS"][0], Secret)
