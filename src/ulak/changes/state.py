"""Proof of a copy: record hashes summed up in 256 buckets by key, and one hash over the buckets."""

from __future__ import annotations

import hashlib

BUCKETS = 256
_WIDTH = 32
_MODULUS = 1 << (8 * _WIDTH)
EMPTY = bytes(BUCKETS * _WIDTH)
ALL_BUCKETS = tuple(f"{number:02x}" for number in range(BUCKETS))
_place = {name: number for number, name in enumerate(ALL_BUCKETS)}


def bucket_of(identifier: str) -> int:
    return hashlib.blake2b(identifier.encode(), digest_size=1).digest()[0]


def to_key(identifier: str) -> str:
    """An identifier as the tables sort it: its bucket in hexadecimal first, so that a bucket is one range of keys."""
    return ALL_BUCKETS[bucket_of(identifier)] + identifier


def to_identifier(key: str) -> str:
    return key[2:]


def range_of(bucket: int) -> tuple[str, str]:
    """The first key that a bucket can have, and one beyond the last."""
    return f"{bucket:02x}", f"{bucket + 1:02x}" if bucket < BUCKETS - 1 else "g"


class Sums:
    """The sums that are added to and taken from each bucket."""

    def __init__(self, start: bytes = EMPTY) -> None:
        self.values = [int.from_bytes(start[place : place + _WIDTH], "big") for place in range(0, len(start), _WIDTH)]

    def add(self, key: str, record: bytes) -> None:
        self.values[_place[key[:2]]] += int.from_bytes(record, "big")

    def take(self, key: str, record: bytes) -> None:
        self.values[_place[key[:2]]] -= int.from_bytes(record, "big")

    def join(self, other: bytes) -> None:
        """Add another table of sums, such as a delta."""
        self.values = [own + more for own, more in zip(self.values, Sums(other).values, strict=True)]

    def packed(self) -> bytes:
        return b"".join((value % _MODULUS).to_bytes(_WIDTH, "big") for value in self.values)


def state_hash(buckets: bytes) -> str:
    return hashlib.sha256(buckets).hexdigest()


def bucket_hashes(buckets: bytes) -> list[str]:
    return [buckets[place : place + _WIDTH].hex() for place in range(0, len(buckets), _WIDTH)]
