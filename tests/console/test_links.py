"""Links of the console: each one on a page of a town at work leads to a page."""

from __future__ import annotations

import re
from html import unescape

from tests.api.serving import serving
from tests.browser.town import town
from tests.console.test_pages import PATHS
from ulak.console.cells import MAX_JSON

LINK = re.compile(r'href="(/console/[^"]*)"')
ELSEWHERE = ("/console/assets/", "/console/login", "/console/logout")


async def test_every_link_of_a_page_leads_to_a_page(tmp_path):
    async with town(tmp_path) as served:
        pages = [(await served.get(f"/console/{path}?lang=en")).text for path in PATHS]
        links = {unescape(link) for page in pages for link in LINK.findall(page)}
        places = sorted(link for link in links if not link.startswith(ELSEWHERE))
        assert len(places) > len(PATHS)
        assert [place for place in places if (await served.get(place)).status != 200] == []


async def test_a_snapshot_that_is_held_back_was_not_published(tmp_path):
    async with town(tmp_path) as served:
        held, published = (await served.get("/api/changes/companies/syncs")).body["items"]
        page = (await served.get("/console/changes?lang=en")).text
    rows = [part.partition("</tr>")[0] for part in page.split("<tr ")[1:]]
    assert ('data-h="Published"><time' in row_of(rows, published["syncId"])) is True
    assert ('data-h="Published"><time' in row_of(rows, held["syncId"])) is False


async def test_a_list_that_nobody_has_read_is_not_called_published():
    async with serving() as served:
        page = (await served.get("/console/changes?lang=en")).text
    assert "No list was read yet." in page
    assert "Everything that was read" not in page


async def test_a_line_of_the_audit_log_opens_to_its_whole_detail(tmp_path):
    async with town(tmp_path) as served:
        note = "n" * 2 * MAX_JSON
        await served.post("/api/keys", {"name": note[:100], "scopes": ["look", "jobs", "metrics"]})
        page = (await served.get("/console/audit?verb=keys&lang=en")).text
    (row,) = [part for part in page.split("<tr ") if "keys.create" in part]
    assert "<details><summary>" in row
    assert "metrics" not in row.partition("</summary>")[0]
    assert "metrics" in row.partition("</summary>")[2]


def row_of(rows, text):
    (found,) = [row for row in rows if text in row]
    return found
