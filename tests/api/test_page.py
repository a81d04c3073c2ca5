"""`/docs` is a page of our own: all of the API on it, readable without script and without any other machine."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from tests.api.serving import settings_for
from ulak import Ulak
from ulak.http.api_page.fields import Fields
from ulak.http.api_page.page import render
from ulak.http.app import Door

DOCUMENT = Door(Ulak(settings=settings_for())).api.openapi()
OPERATIONS = [(method, path) for path, found in DOCUMENT["paths"].items() for method in found]
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """Checks the nesting while it reads, and keeps the text of each article."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.articles, self.style = [], set(), set(), [], {}, ""
        self._article = None
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.add(tag)
        self.ids |= {found["id"]} if "id" in found else set()
        assert not [name for name in found if name.startswith("on") or name in {"src", "style"}]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "a":
            self.links.append(found["href"])
        if tag == "article":
            assert found["id"] not in self.articles
            self._article = found["id"]
            self.articles[self._article] = ""

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "article":
            self._article = None

    def handle_data(self, data):
        if self._article is not None:
            self.articles[self._article] += data + " "
        if self.open[-1:] == ["style"]:
            self.style += data


PAGE = Page(render(DOCUMENT))


def article(method, path):
    (found,) = [text for text in PAGE.articles.values() if f"{method.upper()}   {path} " in text]
    return " ".join(found.split())


@pytest.mark.asyncio(loop_scope="module")
async def test_the_page_comes_from_here_and_forbids_everything_from_elsewhere(shared):
    answer = await shared.get("/docs")
    head = {name.lower(): value for name, value in answer.headers.items()}
    assert (answer.status, head["content-type"]) == (200, "text/html; charset=utf-8")
    policy = head["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    digest = hashlib.sha256(Page(answer.text).style.encode()).digest()
    assert f"style-src 'sha256-{base64.b64encode(digest).decode()}'" in policy
    assert not re.search(r"(?:src|href)=.https?://|url\(|@import|unsafe", answer.text + policy)


@pytest.mark.asyncio(loop_scope="module")
async def test_the_page_tells_a_machine_where_to_look(shared):
    assert "/openapi.json" in PAGE.links
    assert (await shared.get("/openapi.json")).body == DOCUMENT


def test_the_page_needs_no_script_and_has_no_part_from_outside():
    assert PAGE.tags.isdisjoint({"script", "link", "img", "iframe", "object", "embed"})
    assert "prefers-color-scheme: dark" in PAGE.style


def test_every_link_of_the_page_leads_somewhere_on_it_and_every_article_is_linked():
    inside = {link.removeprefix("#") for link in PAGE.links if link.startswith("#")}
    assert inside == PAGE.ids
    assert inside >= set(PAGE.articles)
    assert [link for link in PAGE.links if not link.startswith("#")] == ["/openapi.json"]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_route_is_on_the_page_with_what_it_takes_and_answers(method, path):
    operation, text = DOCUMENT["paths"][path][method], article(method, path)
    assert operation["summary"] in text
    for parameter in operation.get("parameters", []):
        assert f"{parameter['name']} {'required ' if parameter['required'] else ''}" in text
    for status in operation["responses"]:
        assert status in text
    for content in operation.get("requestBody", {}).get("content", {}).values():
        for row in Fields(DOCUMENT).of(content["schema"]):
            assert f" {row.path} {'required ' if row.required else ''}{row.type}" in text


def test_a_hot_route_shows_its_example():
    assert '"recipient": "user@example.com"' in article("post", "/api/notifications")


def test_an_example_beside_the_schema_is_shown():
    assert '"script_path": "report.py"' in article("post", "/api/compute/tasks")


def test_references_are_resolved_to_fields():
    text = article("get", "/api/notifications/{identifier}")
    assert "timeline[].attempt integer" in text
    assert "$ref" not in text


def test_what_a_document_says_is_never_taken_for_markup():
    path = "/api/<b>"
    operation = {
        "summary": "<script>alert(1)</script>",
        "description": "`<i>` & co",
        "parameters": [{"name": "<x>", "in": "query", "schema": {"type": "string", "default": "<y>"}}],
        "responses": {"200": {"description": "<z>"}},
    }
    found = Page(render({**DOCUMENT, "paths": {path: {"get": operation}}}))
    assert found.tags.isdisjoint({"script", "b", "i", "x", "y", "z"})
    assert "alert(1)" in found.articles["get-api-b"]


def test_a_type_that_holds_itself_comes_to_an_end():
    node = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}}
    rows = list(Fields({"components": {"schemas": {"Node": node}}}).of({"$ref": "#/components/schemas/Node"}))
    assert rows[1].path == "next.next"
    assert len(rows) < 10
