"""`/docs` in a real browser: what it shows, what it asks for, and that it fits on a telephone."""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.api.serving import serving
from tests.browser.devtools import chromium, needs_browser

# What reaches past the window, or has to be scrolled sideways in itself.
TOO_WIDE = """[...document.querySelectorAll("body, body *")].filter(one =>
  one.getBoundingClientRect().right > document.documentElement.clientWidth + 1 ||
  (getComputedStyle(one).display != "inline" && one.scrollWidth > one.clientWidth + 1)).map(one => one.outerHTML)"""

pytestmark = [needs_browser, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened():
    async with serving(work=False) as served, chromium() as browser, browser.tab() as tab:
        yield served, tab


@pytest_asyncio.fixture(loop_scope="module")
async def docs(opened):
    """Shows `/docs` in a window of a width."""
    served, tab = opened

    async def show(width, scheme="light"):
        await tab.show(f"{served.address}/docs", width=width, scheme=scheme)
        return tab

    return show


async def test_the_browser_shows_every_route_asks_nobody_else_and_has_nothing_to_complain_of(docs, opened):
    served, tab = opened
    await docs(1280)
    shown = await tab.value("[...document.querySelectorAll('article .call')].map(one => one.innerText)")
    display = await tab.value("getComputedStyle(document.body).display")
    paths = served.door.api.openapi()["paths"]
    assert sorted(shown) == sorted(f"{method.upper()} {path}" for path, found in paths.items() for method in found)
    assert display == "grid"  # the sheet is applied only when its hash is the one that the policy names
    assert tab.asked() == {f"{served.address}/docs"}
    assert tab.complaints() == []


@pytest.mark.parametrize("width", [380, 710, 1125])
async def test_nothing_of_the_page_is_wider_than_the_window(docs, width):
    tab = await docs(width)
    assert await tab.value("innerWidth") == width
    assert await tab.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert await tab.value(TOO_WIDE) == []


async def test_a_link_of_the_list_leads_to_its_article_and_the_keyboard_sees_where_it_is(docs):
    tab = await docs(380)
    await tab.value("document.querySelector('nav a[href=\"#post-api-jobs\"]').click()")
    top = await tab.value("document.querySelector('#post-api-jobs:target').getBoundingClientRect().top")
    await tab.press("Tab")
    focused = await tab.value("[document.activeElement.tagName, getComputedStyle(document.activeElement).outline]")
    assert 0 <= top < 40
    assert (focused[0], "solid 2px" in focused[1]) == ("A", True)


async def test_the_page_is_dark_where_the_reader_has_it_dark(docs):
    tab = await docs(380, "dark")
    assert await tab.value("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
