"""`engine.map`: many small calls in chunks that grow until one takes a worthwhile time; results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from itertools import chain, islice
from time import monotonic
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

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
    """The size of the next chunk, from how long the last ones took; at most a quarter of what each worker has to do.

    Where the number of calls is not known, the first chunks are small: a large one might be all that there is.
    """

    def __init__(self, fixed: int | None, first: int, total: int | None, workers: int) -> None:
        self._fixed = fixed
        self._most = _MAX_CHUNK if total is None else max(1, total // (workers * 4))
        self.fitting = first  # if there were calls enough
        self.size = fixed or (1 if total is None else min(first, self._most))

    def learn(self, count: int, seconds: float) -> None:
        if self._fixed is None and count >= self.size // 2:
            fitting = int(count * _CHUNK_SECONDS / max(seconds, 1e-6))
            self.fitting = max(1, min(fitting, self.size * _MAX_GROWTH, _MAX_CHUNK))
            self.size = min(self.fitting, self._most)


class Paces:
    """How large each function's chunks were at last, for as long as it lives: its next `map` begins with such ones."""

    def __init__(self) -> None:
        self._fitting: WeakKeyDictionary[Callable[..., Any], int] = WeakKeyDictionary()

    def of(self, function: Callable[..., Any]) -> int:
        return self._fitting.get(function, 1) if isinstance(function, _REMEMBERED) else 1

    def remember(self, function: Callable[..., Any], pace: Pace) -> None:
        if isinstance(function, _REMEMBERED):
            self._fitting[function] = pace.fitting


_REMEMBERED = (FunctionType, BuiltinFunctionType)  # another callable may have no hash, or an equality of its own


class Values:
    """The values of chunks one by one, at the speed of `itertools`: a generator would take as long as a tiny call.

    Closing it, or letting go of it, cancels the chunks that are on their way.
    """

    def __init__(self, chunks: Generator[list[Any], None, None]) -> None:
        self._chunks = chunks
        self._values: Iterator[Any] = chain.from_iterable(chunks)

    def __iter__(self) -> Iterator[Any]:
        return self._values

    def __next__(self) -> Any:
        return next(self._values)

    def close(self) -> None:
        self._chunks.close()
        self._values = iter(())


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
    pace = Pace(chunk_size, engine.paces.of(function), total, engine.worker_count)
    values = Values(_run(engine, options, function, Columns(iterables), pace))
    return _shown(values, total, label or str(getattr(function, "__name__", "map"))) if progress else values


def _run(
    engine: Engine, options: Options, function: Callable[..., Any], calls: Columns, pace: Pace
) -> Generator[list[Any], None, None]:
    """A few chunks per worker are on their way at a time; closing the iterator cancels them."""
    flying: deque[Future] = deque()
    try:
        while True:
            while len(flying) < engine.worker_count * 3 and (chunk := calls.take(pace.size)):
                flying.append(engine.accept_chunk(options, function, chunk))
            if not flying:
                return
            values, error, seconds = flying.popleft().result()
            yield values
            if error is not None:
                raise failure(f"map of {function!r}", error)
            pace.learn(len(values), seconds)
            engine.paces.remember(function, pace)
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
    from rich.progress import Progress  # slow to import, and most calls show no bar

    with Progress() as bar:
        row = bar.add_task(label, total=total)
        for value in values:
            yield value
            bar.advance(row)
