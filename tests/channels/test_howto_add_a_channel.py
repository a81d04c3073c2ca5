"""The how-to is followed to the letter: its file is written, its entry point is installed, and a message goes out."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from ulak.channels.registry import GROUP, Registry, discover
from ulak.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "add-a-channel.md"


def block(language: str) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[0]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What pip would leave behind: the module, and a dist-info folder with the entry points."""
    (tmp_path / "mattermost_channel.py").write_text(block("python"), "utf-8")
    info = tmp_path / "mattermost_channel-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mattermost-channel\nVersion: 1.0\n", "utf-8")
    points = tomllib.loads(block("toml"))["project"]["entry-points"][GROUP]
    lines = "".join(f"{name} = {value}\n" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mattermost_channel", raising=False)


@pytest.mark.usefixtures("installed")
async def test_the_channel_of_the_how_to_is_found_and_delivers(receiver, write):
    hooks = await receiver()
    registry = Registry(discover(Settings()))
    channel = registry.find("MATTERMOST")
    receipt = await channel.handle(write(f"{hooks.url}/status/200", notification_type="MATTERMOST", body="Deployed."))
    assert channel.name == "mattermost"
    assert registry.names[0] == "mattermost"
    assert receipt.detail == {"status": 200}
    assert json.loads(hooks.requests[0].body) == {"text": "Deployed."}
    await registry.close()


@pytest.mark.usefixtures("installed")
async def test_the_failures_of_the_how_to_are_classified(receiver, write):
    hooks = await receiver()
    registry = Registry(discover(Settings()))
    for status, name in ((404, "Permanent"), (503, "Transient")):
        with pytest.raises(Exception, match=str(status)) as caught:
            await registry.find("MATTERMOST").handle(write(f"{hooks.url}/status/{status}"))
        assert type(caught.value).__name__ == name
    await registry.close()


def test_every_failure_the_page_names_exists():
    from ulak import errors
    from ulak.channels import channel

    names = re.findall(r"^\| `(\w+)", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(names) == 6
    assert all(hasattr(errors, name) or hasattr(channel, name) for name in names)
