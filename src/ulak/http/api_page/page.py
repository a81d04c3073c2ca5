"""`/docs`: the OpenAPI document as a page for people. One file without script, and nothing is fetched from anywhere."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any, NamedTuple

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ulak.access.caller import NOBODY
from ulak.http.api_page.fields import FieldRow, Fields, Schema
from ulak.http.api_page.style import STYLE
from ulak.http.caller import caller_of
from ulak.http.failure import Unauthenticated
from ulak.http.guard import SIGN_IN

_STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_METHODS = ("get", "post", "put", "patch", "delete")
_MUST = ' <span class="must">required</span>'
_CODE = re.compile(r"`([^`]+)`")


class Operation(NamedTuple):
    method: str
    path: str
    about: Schema

    @property
    def anchor(self) -> str:
        return f"{self.method}-{re.sub('[^a-z0-9]+', '-', self.path.lower()).strip('-')}"


def add_page(api: FastAPI, *, has_sign_in: bool) -> None:
    """Without a key a browser is led to the console's form, where there is one."""
    made: list[str] = []

    async def docs(request: Request) -> Response:
        if caller_of(request) is NOBODY:
            if not has_sign_in:
                raise Unauthenticated
            return RedirectResponse(SIGN_IN, 303)
        if not made:
            made.append(render(api.openapi()))
        return HTMLResponse(made[0], headers=HEADERS)

    api.add_route("/docs", docs, include_in_schema=False)


def render(document: Schema) -> str:
    tags = _by_tag(document)
    fields = Fields(document)
    info = document["info"]
    sections = "".join(_section(tag, operations, fields) for tag, operations in tags.items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])}: HTTP API</title><style>{STYLE}</style></head>"
        f"<body><header><h1>{escape(info['title'])}</h1>{_text(info.get('description', ''))}"
        f'<p>For machines: <a href="/openapi.json">openapi.json</a>.</p></header>{_contents(tags)}'
        f"<main>{sections}{_refusals(document, fields)}"
        '<a class="up" href="#routes">All routes</a></main></body></html>'
    )


def _by_tag(document: Schema) -> dict[str, list[Operation]]:
    tags: dict[str, list[Operation]] = {}
    for path, found in document["paths"].items():
        for method in _METHODS:
            if method in found:
                tag = (found[method].get("tags") or ["other"])[0]
                tags.setdefault(tag, []).append(Operation(method, path, found[method]))
    return {tag: sorted(found, key=lambda one: one.path) for tag, found in tags.items()}


def _contents(tags: dict[str, list[Operation]]) -> str:
    parts = []
    for tag, operations in tags.items():
        links = "".join(
            f'<li><a href="#{one.anchor}">{_method(one.method)} '
            f"<span>{escape(one.about.get('summary') or one.path)}</span></a></li>"
            for one in operations
        )
        parts.append(f"<div><h2>{escape(tag)}</h2><ul>{links}</ul></div>")
    parts.append('<div><h2>Refusals</h2><ul><li><a href="#refusals">A problem</a></li></ul></div>')
    return f'<nav id="routes" aria-label="Routes">{"".join(parts)}</nav>'


def _section(tag: str, operations: Iterable[Operation], fields: Fields) -> str:
    articles = "".join(_article(operation, fields) for operation in operations)
    return f"<section><h2>{escape(tag)}</h2>{articles}</section>"


def _article(operation: Operation, fields: Fields) -> str:
    about = operation.about
    return (
        f'<article id="{operation.anchor}"><h3>{escape(about.get("summary", ""))}</h3>'
        f'<p class="call">{_method(operation.method)} <code>{escape(operation.path)}</code></p>'
        f"{_text(about.get('description', ''))}{_parameters(about.get('parameters', []), fields)}"
        f"{_body(about.get('requestBody', {}), fields)}{_answers(about['responses'], fields)}</article>"
    )


def _parameters(parameters: list[Schema], fields: Fields) -> str:
    rows = [
        FieldRow(
            one["name"],
            f"{fields.type_of(one['schema'])}, {one['in']}",
            one.get("required", False),
            fields.note(one["schema"]),
        )
        for one in parameters
    ]
    return f"<h4>Parameters</h4>{_table(rows)}" if rows else ""


def _body(body: Schema, fields: Fields) -> str:
    parts = []
    for content in body.get("content", {}).values():
        schema = fields.resolve(content.get("schema", {}))
        examples = "".join(f"<h4>Example</h4>{_code(value)}" for value in _examples(content, schema))
        said = _text(schema.get("description", ""))
        parts.append(f"<h4>Body: {escape(fields.type_of(schema))}</h4>{said}{_table(fields.of(schema))}{examples}")
    return "".join(parts)


def _examples(content: Schema, schema: Schema) -> Iterator[Any]:
    yield from (example["value"] for example in content.get("examples", {}).values())
    yield from schema.get("examples", [])


def _answers(responses: dict[str, Schema], fields: Fields) -> str:
    good = {status: answer for status, answer in responses.items() if status < "400"}
    refusals = ", ".join(
        f"{status} {escape(answer['description'])}" for status, answer in responses.items() if status >= "400"
    )
    told = f'<p class="soft">Refused with <a href="#refusals">a problem</a>: {refusals}.</p>' if refusals else ""
    return "".join(_answer(status, answer, fields) for status, answer in good.items()) + told


def _answer(status: str, answer: Schema, fields: Fields) -> str:
    parts = [f"<h4>Answer {status}: {escape(answer['description'])}</h4>"]
    for media, content in answer.get("content", {}).items():
        schema = content.get("schema", {})
        kind = fields.type_of(schema) if schema else ""
        parts.append(f'<p class="soft">{escape(media)}{", " + escape(kind) if kind else ""}</p>')
        parts.append(_answer_table(schema, fields))
    return "".join(parts)


def _answer_table(schema: Schema, fields: Fields) -> str:
    # That a field is always there is no demand on the reader.
    return _table(row._replace(required=False) for row in fields.of(schema))


def _refusals(document: Schema, fields: Fields) -> str:
    problem = document["components"]["schemas"]["Problem"]
    return (
        '<section><h2>Refusals</h2><article id="refusals"><h3>A problem</h3>'
        f"{_text(problem.get('description', ''))}{_answer_table(problem, fields)}</article></section>"
    )


def _table(rows: Iterable[FieldRow]) -> str:
    found = list(rows)
    noted = any(row.note for row in found)
    lines = "".join(_row(row, noted=noted) for row in found)
    head = f"<thead><tr><th>name</th><th>type</th>{'<th>what it is</th>' if noted else ''}</tr></thead>"
    return f'<div class="wide"><table>{head}<tbody>{lines}</tbody></table></div>' if lines else ""


def _row(row: FieldRow, *, noted: bool) -> str:
    name = f"<td><code>{escape(row.path)}</code>{_MUST if row.required else ''}</td>"
    return f"<tr>{name}<td>{escape(row.type)}</td>{f'<td>{_inline(row.note)}</td>' if noted else ''}</tr>"


def _method(method: str) -> str:
    return f'<span class="method {method}">{method.upper()}</span>'


def _code(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, indent=2, ensure_ascii=False))}</pre>"


def _text(text: str) -> str:
    return "".join(f"<p>{_inline(part)}</p>" for part in text.split("\n\n") if part.strip())


def _inline(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(text))
