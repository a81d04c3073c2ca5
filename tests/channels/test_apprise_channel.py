"""APPRISE: only schemes that are listed, and a service's no is a failure."""

from __future__ import annotations

import pytest
from aiohttp import web

from tests.providers.server import ProviderServer, serving
from ulak.channels.apprise import AppriseChannel, AppriseOptions, from_settings
from ulak.errors import Failure, Misconfigured, Permanent, Transient
from ulak.settings import Settings
from ulak.testing import check_channel

# Of the library's own imports.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Ntfy(ProviderServer):
    async def usual(self, request, asked):
        return web.json_response({"id": "x"})


@pytest.fixture
async def ntfy():
    async with serving(Ntfy()) as made:
        yield made


@pytest.fixture
def message(ntfy, write):
    return write(f"ntfy://127.0.0.1:{ntfy.port}/alarms", notification_type="APPRISE")


async def test_a_listed_scheme_is_sent(ntfy, message, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")  # the library heeds proxies, which ours does not
    await check_channel(AppriseChannel(AppriseOptions(frozenset({"ntfy"}))), message)
    assert b"Hello Ada" in ntfy.asked[-1].body


async def test_a_scheme_that_is_not_listed_is_refused(ntfy, message):
    with pytest.raises(Failure) as caught:
        await AppriseChannel(AppriseOptions(frozenset({"tgram"}))).handle(message)
    assert (type(caught.value), caught.value.code, ntfy.asked) == (Permanent, "APPRISE_INVALID_URL", [])


async def test_a_services_no_is_tried_again(ntfy, message):
    ntfy.script = [web.Response(status=500)] * 5
    with pytest.raises(Failure) as caught:
        await AppriseChannel(AppriseOptions(frozenset({"ntfy"}))).handle(message)
    assert (type(caught.value), caught.value.code) == (Transient, "APPRISE_REFUSED")


def test_schemes_that_call_any_address_can_not_be_listed():
    with pytest.raises(Misconfigured, match="json"):
        AppriseChannel(AppriseOptions(frozenset({"json", "ntfy"})))


def test_without_schemes_there_is_no_such_channel():
    assert from_settings(Settings()) is None
