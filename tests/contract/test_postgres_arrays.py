"""PostgreSQL: a list of any type that a room's column may have goes over as an array, and comes back as it was."""

from __future__ import annotations

from typing import Any

import pytest

from ulak.spine.query import Query
from ulak.stores.postgres.arrays import packers

pytestmark = pytest.mark.postgres

ARRAYS: dict[str, list[Any]] = {
    "bigint": [1, None, -(2**63)],
    "int8": [7],
    "integer": [1, None, -(2**31)],
    "int4": [7],
    "int": [7],
    "smallint": [1, None, -(2**15)],
    "int2": [7],
    "float8": [1.5, None, -1e300, 3],
    "double precision": [0.1],
    "real": [1.5, None],
    "boolean": [True, None, False],
    "bool": [True],
    "text": ["ç", None, ""],
    "bytea": [b"\x00", None, b""],
    "json": ['{"a": 1}', None],
    "jsonb": ['{"a": 1}', None],
    "numeric": [1, None],
    "uuid": ["00000000-0000-0000-0000-000000000001", None],
    "timestamptz": [],
}


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("how", ["read", "write"])
async def test_a_list_comes_back_as_it_was(opened, database, kind, how):
    text = f"SELECT value::text FROM unnest(%(values)s::{kind}[]) AS given (value)"
    packed = Query("packed", "", text, ("values",))
    async with opened(database) as bench:
        found = await getattr(bench.store, how)(lambda tx: tx.rows(packed, values=ARRAYS[kind]))
    assert [None if value is None else as_given(kind, value) for (value,) in found] == ARRAYS[kind]


def as_given(kind: str, text: str) -> Any:
    match kind:
        case "float8" | "double precision" | "real":
            return float(text)
        case "boolean" | "bool":
            return text == "true"
        case "bytea":
            return bytes.fromhex(text.removeprefix("\\x"))
        case "text" | "json" | "jsonb" | "uuid":
            return text
    return int(text)


def test_an_unknown_type_is_left_to_the_driver():
    assert packers("SELECT %(a)s::numeric[], %(b)s::bigint[]").keys() == {"b"}
