"""Lists as PostgreSQL's binary arrays. The driver's own dumper looks at each element in Python: five times the cost."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from psycopg import Connection
from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper

_HEAD = struct.Struct(">iiIii").pack  # dimensions, has nulls, element type, length, lower bound
_LENGTH = struct.Struct(">i").pack
_NULL = _LENGTH(-1)
_TYPED = re.compile(r"%\((\w+)\)s::(double precision|\w+)\[\]")


class Packed:
    """An array in the wire's form. Each element type has a class of its own: the driver picks the dumper by class."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class _PackedDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Packed) -> Buffer | None:
        return obj.data


Pack = Callable[[Sequence[Any]], Packed]
_DUMPERS: dict[type[Packed], type[_PackedDumper]] = {}


def _array_class(name: str, oid: int) -> type[Packed]:
    made = type(f"Packed_{name}", (Packed,), {"__slots__": ()})
    _DUMPERS[made] = type(f"_Dumper_{name}", (_PackedDumper,), {"oid": oid})
    return made


def _of_numbers(name: str, oid: int, element: int, form: str) -> Pack:
    """Elements of one width, each behind its length."""
    made, pack = _array_class(name, oid), struct.Struct(f">i{form}").pack
    width = struct.calcsize(f">{form}")

    def packed(values: Sequence[Any]) -> Packed:
        body = b"".join([_NULL if value is None else pack(width, value) for value in values])
        return made(_HEAD(1, 1, element, len(values), 1) + body)

    return packed


def _of_bytes(name: str, oid: int, element: int, to_bytes: Callable[[Any], bytes] = bytes) -> Pack:
    made = _array_class(name, oid)

    def packed(values: Sequence[Any]) -> Packed:
        parts = [_HEAD(1, 1, element, len(values), 1)]
        for value in values:
            if value is None:
                parts.append(_NULL)
            else:
                data = to_bytes(value)
                parts.append(_LENGTH(len(data)))
                parts.append(data)
        return made(b"".join(parts))

    return packed


# By the type's name in a cast. A type that is not here goes by the driver's own dumper, which costs more.
_PACKERS: dict[str, Pack] = {
    "bigint": _of_numbers("bigint", 1016, 20, "q"),
    "integer": _of_numbers("integer", 1007, 23, "i"),
    "smallint": _of_numbers("smallint", 1005, 21, "h"),
    "float8": _of_numbers("float8", 1022, 701, "d"),
    "real": _of_numbers("real", 1021, 700, "f"),
    "boolean": _of_numbers("boolean", 1000, 16, "?"),
    "text": _of_bytes("text", 1009, 25, str.encode),
    "bytea": _of_bytes("bytea", 1001, 17),
    "json": _of_bytes("json", 199, 114, str.encode),
    "jsonb": _of_bytes("jsonb", 3807, 3802, lambda text: b"\x01" + text.encode()),
}
_SAME = {"int8": "bigint", "int4": "integer", "int": "integer", "int2": "smallint", "double precision": "float8",
         "float4": "real", "bool": "boolean"}  # fmt: skip


@cache
def packers(statement: str) -> dict[str, Pack]:
    """How each array parameter of a statement is packed, by the cast that stands behind it."""
    typed = [(name, _SAME.get(kind, kind)) for name, kind in _TYPED.findall(statement)]
    return {name: _PACKERS[kind] for name, kind in typed if kind in _PACKERS}


def register(connection: Connection[Any]) -> None:
    """Teach a connection the arrays, and one width for whole numbers, so that each statement is prepared once."""
    for packed, dumper in _DUMPERS.items():
        connection.adapters.register_dumper(packed, dumper)
    connection.adapters.register_dumper(int, Int8BinaryDumper)
