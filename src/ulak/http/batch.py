"""Batches over HTTP: an array of items, each accepted or refused on its own merits, answered with 207."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Generic, TypeVar

import msgspec

from ulak import codec
from ulak.errors import Error, Invalid
from ulak.http.failure import Problem, answer_to
from ulak.http.hot_routes import Send, reply

T = TypeVar("T")

_decoder = msgspec.json.Decoder(list[msgspec.Raw])


class BatchVerdict(msgspec.Struct, Generic[T], omit_defaults=True):
    """One item of a batch: accepted, or refused with the reason."""

    status: int
    accepted: T | None = None
    problem: Problem | None = None


def decode_batch(body: bytes, most: int) -> list[bytes]:
    """Return the items as they are, for their room to decode."""
    try:
        items = _decoder.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        why = f"the body is not a JSON array: {error}"
        raise Invalid(why, fields=[("", "must be a JSON array")]) from error
    check_size(items, most)
    return [bytes(item) for item in items]


def check_size(items: Sized, most: int) -> None:
    if not 0 < len(items) <= most:
        raise Invalid(f"a batch has 1 to {most} items, not {len(items)}", fields=[("", f"must have 1 to {most} items")])


async def reply_batch(send: Send, answers: Iterable[T | Error]) -> int:
    return await reply(send, 207, codec.encode([_verdict(answer) for answer in answers]))


def _verdict(answer: T | Error) -> BatchVerdict[T]:
    if not isinstance(answer, Error):
        return BatchVerdict(202, answer)
    status, problem, _ = answer_to(answer)
    return BatchVerdict(status, None, problem)
