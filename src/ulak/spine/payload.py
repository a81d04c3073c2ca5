"""The form of a kind's payload: a dataclass, a msgspec Struct, a pydantic model, or any other type msgspec can decode.

A payload is checked by decoding it as for a handler, so every accepted payload can be read.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

import msgspec

from ulak import codec, complaint
from ulak.errors import Invalid, Permanent

CODE = "PAYLOAD_INVALID"
_AT = re.compile(r"(?P<reason>.*) - at `\$(?P<path>[^`]*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `([^`]+)`")

Complaints = list[tuple[str, str]]


class Misfit(Exception):
    """A payload that is not of the form."""

    def __init__(self, complaints: Complaints) -> None:
        super().__init__(complaints)
        self.complaints = complaints


class _PayloadReader(Protocol):
    """Reads JSON as the type, and writes a value as JSON; raises Misfit."""

    def read(self, document: bytes | str) -> Any: ...

    def write(self, value: Any) -> bytes: ...


class PayloadForm:
    def __init__(self, kind: str, wanted: Any) -> None:
        self.wanted = wanted
        self._kind = kind
        self._name = getattr(wanted, "__name__", str(wanted))
        self._reader: _PayloadReader = _PydanticReader(wanted) if _is_pydantic(wanted) else _MsgspecReader(kind, wanted)

    def accept(self, value: Any) -> msgspec.Raw:
        """A payload for the store, as an instance of the type or as plain data; Invalid names the fields at fault."""
        try:
            document = self._reader.write(value)
            self._reader.read(document)
        except Misfit as misfit:
            fields = [(f"payload{path}", reason) for path, reason in misfit.complaints]
            raise Invalid(
                f"the payload of {self._kind} is not of the form {self._name}: {_told(fields)}", fields=fields
            ) from None
        return msgspec.Raw(document)

    def load(self, document: bytes | str) -> Any:
        """A stored payload as its handler gets it; one that no longer fits can never work."""
        try:
            return self._reader.read(document)
        except Misfit as misfit:
            fields = [(f"payload{path}", reason) for path, reason in misfit.complaints]
            raise Permanent(
                f"the stored payload is not of the form {self._name}: {_told(fields)}; "
                "mend it (ulak dead edit) and send it again",
                code=CODE,
            ) from None


def _told(fields: Complaints) -> str:
    return "; ".join(f"{name} {reason}" for name, reason in fields)


class _MsgspecReader:
    def __init__(self, kind: str, wanted: Any) -> None:
        try:
            self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(wanted)
        except TypeError as error:
            raise Invalid(f"payload={wanted!r:.80} of {kind} is not a type that can be read: {error}") from error

    def read(self, document: bytes | str) -> Any:
        try:
            return self._decoder.decode(document)
        except msgspec.ValidationError as error:
            raise Misfit([_complaint(str(error))]) from None
        except (msgspec.DecodeError, UnicodeError) as error:
            raise Misfit([("", f"is not JSON: {error}")]) from None

    def write(self, value: Any) -> bytes:
        try:
            return codec.encode(value)
        except (TypeError, msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise Misfit([("", f"can't be written as JSON: {error}")]) from None


def _complaint(said: str) -> tuple[str, str]:
    """From msgspec's words, which end with the place: `$.items[0].count`."""
    found = _AT.fullmatch(said)
    path, reason = ("", said) if found is None else (found["path"], found["reason"])
    if missing := _MISSING.fullmatch(reason):
        return f"{path}.{missing[1]}", "is required"
    return path, complaint.of_decoder(reason)


def _is_pydantic(wanted: Any) -> bool:
    """A pydantic model, without importing pydantic for programs that don't use it."""
    return isinstance(wanted, type) and hasattr(wanted, "model_validate_json")


class _PydanticReader:
    def __init__(self, wanted: Any) -> None:
        self._model = wanted

    def read(self, document: bytes | str) -> Any:
        from pydantic import ValidationError

        try:
            return self._model.model_validate_json(document)
        except ValidationError as error:
            raise Misfit([(_path(one["loc"]), complaint.of_validator(one["msg"])) for one in error.errors()]) from None

    def write(self, value: Any) -> bytes:
        try:
            if isinstance(value, self._model):
                written: str = value.model_dump_json(by_alias=True)
                return written.encode()
            return codec.encode(value)
        except (TypeError, msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise Misfit([("", f"can't be written as JSON: {error}")]) from None


def _path(location: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
