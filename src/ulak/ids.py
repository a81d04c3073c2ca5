"""Ids that are ours: 63 bits, ordered by time, never used twice.

41 bits of milliseconds since 2020, 10 bits of node (one per open store of a process), 12 bits of sequence.
When a millisecond's 4,096 numbers are used up, the next millisecond's are borrowed, so order and uniqueness hold.
A node has one maker at a time: where nodes change hands, a maker stops at `good_until`, before the next one may begin.
"""

from __future__ import annotations

import secrets
import threading
import uuid
from itertools import islice

from ulak.errors import Unavailable

EPOCH_MILLIS = 1_577_836_800_000
NODES = 1024
FOREVER = 1 << 63

# An owner is declared dead after its lease (dead_at > lease_at), and a newcomer gets its node when that has rested
# (from dead_at + rest). So the node is the owner's until lease_at + rest, whatever the lease is. It stops a margin
# earlier, for clocks that differ and for milliseconds that were borrowed.
NODE_REST_MILLIS = 60_000
NODE_MARGIN_MILLIS = 15_000

_SEQUENCE_BITS = 12
_NODE_BITS = 10
MARK_BITS = 58
# What ids carried before each store had a mark of its own: "ulak". They are still found.
FIRST_MARK = 0x756C616B


class Ids:
    """A generator for one node. `floor` is the newest instant already stored: ids continue above it."""

    def __init__(
        self, node: int = 0, floor: int = EPOCH_MILLIS, good_until: int = FOREVER, mark: int = FIRST_MARK
    ) -> None:
        if not 0 <= node < NODES:
            raise ValueError(f"node {node} is out of range; use 0 to {NODES - 1}")
        self._node = node
        self._lock = threading.Lock()
        self._millis = max(floor, EPOCH_MILLIS - 1)  # whose numbers are being taken: none is left of this one
        self._numbers = iter(range(0))  # its own; `next` of a range is atomic, so usually the lock is not needed
        self.good_until = good_until
        self.mark = mark

    # Ids as the outside sees them

    def to_uuid(self, identifier: int) -> uuid.UUID:
        return to_uuid(identifier, self.mark)

    def to_text(self, identifier: int) -> str:
        return to_text(identifier, self.mark)

    def from_uuid(self, value: uuid.UUID | str) -> int | None:
        """The id inside a UUID of this store; None for somebody else's, and for text that is not a UUID."""
        try:
            return from_uuid(value if isinstance(value, uuid.UUID) else uuid.UUID(value), self.mark)
        except ValueError:
            return None

    # Making them

    def hold(self, lease_at: int) -> None:
        """The node's lease was renewed until then, and that is committed."""
        self.good_until = max(self.good_until, lease_at + NODE_REST_MILLIS - NODE_MARGIN_MILLIS)

    def take(self, now: int) -> int:
        if now <= self._millis and (identifier := next(self._numbers, 0)):
            return identifier
        return self.take_many(now, 1)[0]

    def take_many(self, now: int, count: int) -> list[int]:
        taken: list[int] = []
        with self._lock:
            while len(taken) < count:
                if now > self._millis or not (more := list(islice(self._numbers, count - len(taken)))):
                    self._turn(now)
                else:
                    taken += more
        return taken

    def _turn(self, now: int) -> None:
        """To the numbers of this millisecond or, when it or a later one is used up, of the next."""
        if now > self.good_until:
            raise self._expired()
        self._millis = max(now, self._millis + 1)
        first = (self._millis - EPOCH_MILLIS) << (_NODE_BITS + _SEQUENCE_BITS) | self._node << _SEQUENCE_BITS
        self._numbers = iter(range(first, first + (1 << _SEQUENCE_BITS)))

    def _expired(self) -> Unavailable:
        return Unavailable(
            f"no ids for now: this process was cut off from the database for so long that its node {self._node} may be "
            "another's; it registers again by itself, try again in a few seconds"
        )


def first_of(millis: int) -> int:
    """The lowest id that a millisecond can have."""
    return max(millis - EPOCH_MILLIS, 0) << (_NODE_BITS + _SEQUENCE_BITS)


def made_at(identifier: int) -> int:
    """The millisecond in which an id was made."""
    return (identifier >> (_NODE_BITS + _SEQUENCE_BITS)) + EPOCH_MILLIS


def new_mark() -> int:
    """A random number for a store: the same id of another installation is another UUID."""
    return secrets.randbits(MARK_BITS)


def to_uuid(identifier: int, mark: int = FIRST_MARK) -> uuid.UUID:
    """An id as the outside sees it: a version 8 UUID that `from_uuid` turns back."""
    high, low = identifier >> 16, identifier & 0xFFFF
    tail = 0b10 << 62 | (low & 0xF) << MARK_BITS | mark
    return uuid.UUID(int=high << 80 | 0x8 << 76 | low >> 4 << 64 | tail)


def to_text(identifier: int, mark: int = FIRST_MARK) -> str:
    """The same UUID as text, without making one: for where every microsecond counts."""
    digits = f"{identifier:016x}"
    tail = f"{0b10 << 62 | (identifier & 0xF) << MARK_BITS | mark:016x}"
    return f"{digits[:8]}-{digits[8:12]}-8{digits[12:15]}-{tail[:4]}-{tail[4:]}"


def from_uuid(value: uuid.UUID, mark: int = FIRST_MARK) -> int | None:
    """The id inside a UUID of this store, or None when the UUID is somebody else's."""
    number = value.int
    identifier = (number >> 80) << 16 | (number >> 64 & 0xFFF) << 4 | number >> MARK_BITS & 0xF
    return identifier if value in (to_uuid(identifier, mark), to_uuid(identifier)) else None
