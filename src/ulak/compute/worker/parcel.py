"""Values as they cross the pipe: pickled, and large buffers beside the pickle, in shared memory.

A small value is plain bytes. A large one is a `Parcel`: its arrays (pickle's out-of-band buffers), and the pickle
itself when that is large, are written once by the sender and mapped by the receiver.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pickle import PickleBuffer, PicklingError, dumps, loads
from typing import Any, NamedTuple

from ulak.compute.worker.lender import Lender
from ulak.compute.worker.protocol import PROTOCOL
from ulak.compute.worker.shared_memory import PAGE, Loan, Segment, SegmentPool

MIN_SHARED_BYTES = 64 * 1024  # below, a pipe is as fast
SEGMENT_BYTES = 16 * 1024 * 1024  # for many arguments on their way, which share a descriptor
_POOLED = 8  # segments that stay for another use, at most: 128 MiB
_ALIGNMENT = 64  # of a buffer in its segment: what vector instructions like


class Parcel(NamedTuple):
    """A pickle, and where its buffers are. `blob` is None when the pickle is itself the first of them."""

    blob: bytes | None
    segment: Segment
    offset: int
    sizes: tuple[int, ...]

    def load(self) -> Any:
        """The value, its arrays on the mapped memory."""
        pieces = self._pieces()
        return loads(pieces[0], buffers=pieces[1:]) if self.blob is None else loads(self.blob, buffers=pieces)

    def inline(self) -> Inline:
        """The same as plain bytes, for where memory can't be shared."""
        pieces = [bytes(piece) for piece in self._pieces()]
        return (pieces[0], tuple(pieces[1:])) if self.blob is None else (self.blob, tuple(pieces))

    def _pieces(self) -> list[Any]:
        places = _places(self.sizes)
        region = self.segment.map(self.offset, places[-1])
        return [region[place : place + size] for place, size in zip(places, self.sizes, strict=False)]


# What pickle says of a lambda, a local class, or a function that cannot be found by its name.
_UNPICKLABLE = (PicklingError, AttributeError, TypeError)
Inline = tuple[bytes, tuple[bytes, ...]]
Packed = bytes | Parcel | Inline


class Packer:
    """Pickles values. The parcels of one packer share segments; each is freed with the last of its parcels."""

    def __init__(self, segment_bytes: int = 0, *, by_value: bool = False, lender: Lender | None = None) -> None:
        """0: each parcel has a segment of its own, for values that the receiver may keep for long; from a lender, if
        the receiver gives them back.

        By value: the classes and functions of the main module go whole, since the receiver can't import it.
        """
        self._segment_bytes, self._lender = segment_bytes, lender
        self._pool = SegmentPool(_POOLED if segment_bytes else 0, segment_bytes)
        self.by_value = by_value
        self._lock = threading.Lock()
        self._current: Segment | None = None

    def pack(self, value: Any) -> bytes | Parcel:
        if self.by_value:
            return self._pack(value, cloud_dumps)
        try:
            return self._pack(value, dumps)
        except _UNPICKLABLE:
            return self._pack(value, cloud_dumps)

    def dump(self, value: Any) -> bytes:
        """The same as plain bytes, whatever their size."""
        if self.by_value:
            return cloud_dumps(value)
        try:
            return dumps(value, PROTOCOL)
        except _UNPICKLABLE:
            return cloud_dumps(value)

    def _pack(self, value: Any, dump: Callable[..., bytes]) -> bytes | Parcel:
        buffers: list[memoryview] = []

        def keep_aside(buffer: PickleBuffer) -> bool:
            """True: leave it in the pickle."""
            try:
                view = buffer.raw()
            except BufferError:  # not contiguous
                return True
            if view.nbytes < MIN_SHARED_BYTES:
                return True
            buffers.append(view)
            return False

        blob = dump(value, PROTOCOL, buffer_callback=keep_aside)
        if not buffers and len(blob) < MIN_SHARED_BYTES:
            return blob
        try:
            return self._place(blob, buffers)
        except OSError:  # no descriptor or no memory left: through the pipe, then
            return dump(value, PROTOCOL) if buffers else blob

    def _place(self, blob: bytes, buffers: list[memoryview]) -> Parcel:
        is_large = len(blob) >= MIN_SHARED_BYTES
        pieces: list[Any] = [blob, *buffers] if is_large else list(buffers)
        sizes = tuple(piece.nbytes if isinstance(piece, memoryview) else len(piece) for piece in pieces)
        places = _places(sizes)
        segment, offset = self._allot(places[-1])
        try:
            for piece, place in zip(pieces, places, strict=False):
                segment.write(piece, offset + place)
        except OSError:
            self._forfeit(segment)
            raise
        return Parcel(None if is_large else blob, segment, offset, sizes)

    def _forfeit(self, segment: Segment) -> None:
        if self._lender is not None:
            with self._lock:
                self._lender.forfeit(segment)

    def _allot(self, size: int) -> tuple[Segment, int]:
        with self._lock:
            if self._lender is not None:
                return self._lender.lend(size), 0
            segment = self._current
            if segment is not None and segment.clean == segment.users:
                segment.size = segment.users = segment.clean = 0  # all that was in it is over
            if segment is None or segment.size + size > self._segment_bytes:
                segment = self._pool.take()
                if size <= self._segment_bytes:  # a larger one is for this value alone
                    self._current = segment
            offset = segment.size
            segment.size += -(-size // PAGE) * PAGE
            segment.users += 1
            return segment, offset


def cloud_dumps(value: Any, protocol: int = PROTOCOL, **more: Any) -> bytes:
    """By cloudpickle, which takes lambdas, closures and local classes whole."""
    import cloudpickle  # few need it, and it is slow to import

    blob: bytes = cloudpickle.dumps(value, protocol, **more)
    return blob


def unpack(packed: Packed) -> Any:
    if isinstance(packed, bytes):
        return loads(packed)
    if isinstance(packed, Parcel):
        return packed.load()
    blob, pieces = packed
    return loads(blob, buffers=[bytearray(piece) for piece in pieces])


def inline(packed: Any) -> Any:
    return packed.inline() if isinstance(packed, Parcel) else packed


def _places(sizes: tuple[int, ...]) -> list[int]:
    """Where each piece begins; the last number is the length of all."""
    places = [0]
    for size in sizes:
        places.append(places[-1] + -(-size // _ALIGNMENT) * _ALIGNMENT)
    return places


# On the pipe a parcel is a plain tuple that names one of the descriptors sent with the frame.

Tuples = Sequence[tuple[Any, ...]]


def to_wire(messages: Tuples) -> tuple[list[tuple[Any, ...]], list[int]]:
    """Messages whose parcels are replaced, and the descriptors that go with them."""
    segments: dict[int, int] = {}

    def replaced(part: Any) -> Any:
        if type(part) is not Parcel:
            return part
        index = segments.setdefault(part.segment.descriptor, len(segments))
        return ..., part.blob, index, part.offset, part.sizes, part.segment.ticket

    wired = [tuple(map(replaced, message)) for message in messages]
    return wired, list(segments)


def from_wire(
    messages: Tuples, descriptors: Sequence[int], give_back: Callable[[int], object] | None = None
) -> list[tuple[Any, ...]]:
    """The same messages at the other end. `give_back` gets the tickets of what was lent."""
    segments: dict[int, Segment] = {}

    def received(index: int, ticket: int) -> Segment:
        loan = Loan(ticket, give_back) if ticket and give_back else None
        return segments.setdefault(index, Segment(descriptors[index], loan=loan))

    def restored(part: Any) -> Any:
        if type(part) is not tuple or not part or part[0] is not ...:
            return part
        _, blob, index, offset, sizes, ticket = part
        segment = segments.get(index) or received(index, ticket)
        return Parcel(blob, segment, offset, sizes)

    return [tuple(map(restored, message)) for message in messages]
