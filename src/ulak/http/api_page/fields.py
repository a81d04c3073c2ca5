"""A JSON schema of the OpenAPI document as rows for a reader: every field by its path, with references resolved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

Schema = dict[str, Any]

_DEEPEST = 6
_BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} long",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "matches {}",
}


class FieldRow(NamedTuple):
    """`path` is `timeline[].at` for a field of the items of a list."""

    path: str
    type: str
    required: bool
    note: str


class Fields:
    def __init__(self, document: Schema) -> None:
        self._known: dict[str, Schema] = document.get("components", {}).get("schemas", {})

    def of(self, schema: Schema, path: str = "") -> Iterator[FieldRow]:
        """The fields of an object or of a list of objects; of anything else there are none."""
        inner, path = self._reach(schema, path)
        required = inner.get("required", ())
        for name, field in inner.get("properties", {}).items():
            where = f"{path}.{name}" if path else name
            yield FieldRow(where, self.type_of(field), name in required, self.note(field))
            if where.count(".") + where.count("[]") < _DEEPEST:  # a type that holds itself would never end
                yield from self.of(field, where)

    def type_of(self, schema: Schema) -> str:
        schema = self.resolve(schema)
        if choices := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
            return " or ".join(dict.fromkeys(self.type_of(choice) for choice in choices))
        if "enum" in schema or "const" in schema:
            return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
        kind = schema.get("type", "anything")
        if kind == "array":
            return f"list of {self.type_of(schema.get('items', {}))}"
        if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            return f"object of {self.type_of(schema['additionalProperties'])}"
        return f"{kind} ({schema['format']})" if "format" in schema else str(kind)

    def note(self, schema: Schema) -> str:
        """Return a field's description, bounds and default."""
        said = [self.resolve(schema).get("description", "")] if "$ref" not in schema else []
        for part in (schema, *schema.get("anyOf", ())):
            said += [text.format(_plain(part[name])) for name, text in _BOUNDS.items() if name in part]
        if schema.get("default") is not None:
            said.append(f"default {json.dumps(schema['default'])}")
        return "; ".join(part.rstrip(".") if len(said) > 1 else part for part in said if part)

    def resolve(self, schema: Schema) -> Schema:
        """Return the schema that a reference names, with the words that stand beside it."""
        if "$ref" not in schema:
            return schema
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        return {**self.resolve(self._known[schema["$ref"].rpartition("/")[2]]), **beside}

    def _reach(self, schema: Schema, path: str) -> tuple[Schema, str]:
        """Through references, `or null` and lists, down to what has fields."""
        schema = self.resolve(schema)
        for choice in schema.get("anyOf", ()):
            if "$ref" in choice or choice.get("type") in {"object", "array"}:
                return self._reach(choice, path)
        if schema.get("type") == "array" and "items" in schema:
            return self._reach(schema["items"], f"{path}[]")
        return schema, path


def _plain(bound: Any) -> Any:
    """Pydantic writes the bounds of an integer as 100.0."""
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound
