"""`engine.map`: many small calls in chunks that grow until one takes a worthwhile time; results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any

from ulak.compute.engine.calls import failure
from ulak.compute.engine.future import Future
from ulak.compute.engine.work import Options

if TYPE_CHECKING:
    from ulak.compute.engine.engine import Engine

_CHUNK_SECONDS = 0.05  # what a chunk should take
_MAX_CHUNK = 65536
_MAX_GROWTH = 64  # from one chunk to the next: the first calls may not be like the others


class Columns:
    """The arguments of many calls, a column for each, taken chunk by chunk; as with `map`, the shortest ends it."""

    def __init__(self, iterables: tuple[Iterable[Any], ...]) -> None:
        self._takers = [_slices(one) if type(one) in _SLICED else _items(one) for one in iterables]

    def take(self, size: int) -> list[Any]:
        """Empty when there are no more calls."""
        columns = [take(size) for take in self._takers]
        return columns if all(columns) else []


_SLICED = (list, tuple, range)  # a slice of a range pickles to a few bytes


def _slices(sequence: Any) -> Callable[[int], Any]:
    at = 0

    def take(size: int) -> Any:
        nonlocal at
        at += size
        return sequence[at - size : at]

    return take


def _items(iterable: Iterable[Any]) -> Callable[[int], Any]:
    iterator = iter(iterable)
    return lambda size: list(islice(iterator, size))


class Pace:
    """The size of the next chunk, from how long the last ones took."""

    def __init__(self, fixed: int | None, total: int | None, workers: int) -> None:
        self._fixed = fixed
        self._most = _MAX_CHUNK if total is None else max(1, total // (workers * 4))
        self.size = fixed or 1

    def learn(self, count: int, seconds: float) -> None:
        if self._fixed is None and count >= self.size // 2:
            fitting = int(count * _CHUNK_SECONDS / max(seconds, 1e-6))
            self.size = max(1, min(fitting, self.size * _MAX_GROWTH, self._most))


def map_calls(
    engine: Engine,
    options: Options,
    function: Callable[..., Any],
    iterables: tuple[Iterable[Any], ...],
    *,
    chunk_size: int | None = None,
    progress: bool = False,
    label: str | None = None,
) -> Iterator[Any]:
    sizes = [len(iterable) for iterable in iterables if isinstance(iterable, Sized)]
    total = min(sizes) if len(sizes) == len(iterables) else None
    if engine.options.recycle_tasks is not None:
        chunk_size = 1  # a chunk would count as one task, and its worker might run too many
    pace = Pace(chunk_size, total, engine.worker_count)
    values = _run(engine, options, function, Columns(iterables), pace)
    return _shown(values, total, label or str(getattr(function, "__name__", "map"))) if progress else values


def _run(engine: Engine, options: Options, function: Callable[..., Any], calls: Columns, pace: Pace) -> Iterator[Any]:
    """A few chunks per worker are on their way at a time; closing the iterator cancels them."""
    flying: deque[Future] = deque()
    try:
        while True:
            while len(flying) < engine.worker_count * 3 and (chunk := calls.take(pace.size)):
                flying.append(engine.accept_chunk(options, function, chunk))
            if not flying:
                return
            values, error, seconds = flying.popleft().result()
            yield from values
            if error is not None:
                raise failure(f"map of {function!r}", error)
            pace.learn(len(values), seconds)
    finally:
        for future in flying:
            engine.cancel(future)


def unchunk(function: Callable[..., Any], chunks: list[Future], timeout: float | None) -> Iterator[Any]:
    """The values of chunks that are all on their way, in order; the timeout counts from this call."""
    until = None if timeout is None else monotonic() + timeout

    def values() -> Iterator[Any]:
        try:
            for chunk in chunks:
                found, error, _ = chunk.result(None if until is None else until - monotonic())
                yield from found
                if error is not None:
                    raise failure(f"map of {function!r}", error)
        finally:
            for chunk in chunks:
                chunk.cancel()

    return values()


def _shown(values: Iterator[Any], total: int | None, label: str) -> Iterator[Any]:
    from rich.progress import Progress  # only who wants a bar pays for it

    with Progress() as bar:
        row = bar.add_task(label, total=total)
        for value in values:
            yield value
            bar.advance(row)
