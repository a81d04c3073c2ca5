"""Columns of the console name fields that the public routes have."""

from __future__ import annotations

import re

import pytest

from ulak import Ulak
from ulak.console.console import pages_of
from ulak.console.page import FactList, Table
from ulak.http.app import build_app
from ulak.settings import Settings


@pytest.fixture(scope="module")
def ulak():
    return Ulak(settings=Settings(store="memory:"))


def nameless(path: str) -> str:
    return re.sub(r"\{\w+\}", "{}", path)


class Answers:
    """The answers of the routes by the OpenAPI document."""

    def __init__(self, ulak):
        self._document = build_app(ulak).api.openapi()
        self._routes = {nameless(path): methods for path, methods in self._document["paths"].items()}

    def of(self, source: str) -> dict:
        answer = self._routes[nameless(source.partition("?")[0])]["get"]["responses"]["200"]
        return answer["content"]["application/json"]["schema"]

    def field(self, schema: dict, names: str) -> dict | None:
        """None is a field that the schema does not have; {} one of an object that may have any."""
        for name in filter(None, names.split(".")):
            schema = self.resolved(schema)
            known = schema.get("properties", {})
            if name not in known:
                return {} if schema.get("additionalProperties") or not known else None
            schema = known[name]
        return self.resolved(schema)

    def resolved(self, schema: dict) -> dict:
        if "$ref" in schema:
            return self.resolved(self._document["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
        present = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
        return self.resolved(present[0]) if len(present) == 1 else schema


def columns_of(page, answers):
    """Each column that names a field, with the schema of what it is a field of."""
    for part in page.parts:
        if isinstance(part, Table) and isinstance(part.source, str) and isinstance(part.items, str):
            items = answers.field(answers.of(part.source), part.items)
            yield from ((one, answers.resolved((items or {}).get("items", {}))) for one in part.columns)
        elif isinstance(part, FactList) and isinstance(part.source, str):
            yield from ((one, answers.of(part.source)) for one in part.names)


def test_every_column_of_a_page_is_a_field_of_its_routes_answer(ulak):
    answers = Answers(ulak)
    named = [
        (f"{page.path}: {column.name}", answers.field(schema, column.name))
        for page in pages_of(ulak).values()
        for column, schema in columns_of(page, answers)
        if isinstance(column.name, str)
    ]
    assert len(named) > 100
    assert [name for name, found in named if found is None] == []
