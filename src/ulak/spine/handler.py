"""Handlers: which function runs a job kind, in which lane, and within which limits."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypedDict, TypeVar, get_args

from ulak.backoff import Backoff
from ulak.errors import Conflict, Invalid
from ulak.spine.breaker import BreakerPolicy
from ulak.spine.job import MAX_KIND, Job
from ulak.spine.payload import PayloadForm
from ulak.spine.signature import check_signature
from ulak.spine.validate import is_kind, is_number, is_whole

LaneName = Literal["async", "thread", "process"]
Policy = Literal["block", "reject", "wait"]
MAX_WHOLE = (1 << 63) - 1
T = TypeVar("T")
R = TypeVar("R")


class HandlerOptions(TypedDict, total=False):
    """The options of a handler, for type checkers; the defaults are in `Handler`."""

    lane: LaneName
    concurrency: int
    max_attempts: int | None
    timeout_seconds: float
    backoff: Backoff | None
    rate_per_second: float | None
    capacity: int | None
    admission: Policy
    wait_seconds: float
    breaker: BreakerPolicy | None


class Declares(Protocol[T]):
    """A decorator for a function that takes a `Job[T]`; it returns the function."""

    def __call__(self, call: Callable[[Job[T]], R], /) -> Callable[[Job[T]], R]: ...


@dataclass(frozen=True, slots=True)
class Handler:
    """A kind and everything that is decided about it.

    `concurrency` bounds this process; a bound for all instances together is a key with slots. `rate_per_second` is
    shared by all instances. `capacity` bounds the active jobs (ready or running); `admission` says what happens there.
    With a `breaker`, a job's key names its destination; where it may name something else, `destination` returns the
    destination of a key and payload, with the number of such jobs that run there at once, or None where it is the key.
    `payload` is the type of the payload, for checks; None is any.
    """

    kind: str
    call: Callable[..., Any]
    lane: LaneName = "async"
    concurrency: int = 100
    max_attempts: int = 20
    timeout_seconds: float = 300.0
    backoff: Backoff = field(default_factory=Backoff)
    rate_per_second: float | None = None
    capacity: int | None = None
    admission: Policy = "block"
    wait_seconds: float = 5.0
    breaker: BreakerPolicy | None = None
    destination: Callable[[str, Any], tuple[str, int] | None] | None = None
    payload: Any = None
    form: PayloadForm | None = field(init=False, default=None)
    consumer: str = ""  # by which name its tasks stand in dumps and logs; the kind, if left out

    def __post_init__(self) -> None:
        if not is_kind(self.kind):
            raise Invalid(f"kind {self.kind!r} must be text of 1 to {MAX_KIND} characters, like room.verb")
        self._check_numbers()
        self._check_choices()
        if self.lane == "async" and not inspect.iscoroutinefunction(self.call):
            raise Invalid(f"the handler of {self.kind} is a plain function; make it async or give lane='thread'")
        if self.lane != "async" and inspect.iscoroutinefunction(self.call):
            raise Invalid(f"the handler of {self.kind} is async; it can't run in the {self.lane} lane")
        check_signature(self.kind, self.call, self.payload)
        if self.payload is not None:
            object.__setattr__(self, "form", PayloadForm(self.kind, self.payload))

    def _check_numbers(self) -> None:
        for name in ("concurrency", "max_attempts", "capacity"):
            number = getattr(self, name)
            if not is_whole(number, 1, MAX_WHOLE) and not (name == "capacity" and number is None):
                raise Invalid(f"{name} of {self.kind} must be a whole number of at least 1, not {number!r:.50}")
        for name in ("timeout_seconds", "rate_per_second"):
            number = getattr(self, name)
            if not (is_number(number) and number > 0) and not (name == "rate_per_second" and number is None):
                raise Invalid(f"{name} of {self.kind} must be more than 0, not {number!r:.50}")
        if not is_number(self.wait_seconds):
            raise Invalid(f"wait_seconds of {self.kind} must be at least 0, not {self.wait_seconds!r:.50}")

    def _check_choices(self) -> None:
        for name, choices in (("lane", get_args(LaneName)), ("admission", get_args(Policy))):
            if getattr(self, name) not in choices:
                raise Invalid(f"{name} of {self.kind} must be one of {', '.join(choices)}, not {getattr(self, name)!r}")
        for name, wanted in (("backoff", Backoff), ("breaker", BreakerPolicy)):
            given = getattr(self, name)
            if given is not None and not isinstance(given, wanted):
                raise Invalid(f"{name} of {self.kind} must be a {wanted.__name__}, not {given!r}")


class Handlers:
    """The kinds that this process can run."""

    def __init__(self) -> None:
        self._by_kind: dict[str, Handler] = {}
        self._forms: dict[str, PayloadForm] = {}

    def add(self, handler: Handler) -> None:
        if handler.kind in self._by_kind:
            raise Conflict(f"kind {handler.kind} has a handler already; a kind has one")
        self._by_kind[handler.kind] = handler
        if handler.form is not None:
            self._forms[handler.kind] = handler.form

    def get(self, kind: str) -> Handler | None:
        return self._by_kind.get(kind)

    @property
    def has_forms(self) -> bool:
        return bool(self._forms)

    def form_of(self, kind: object) -> PayloadForm | None:
        """The form of a kind's payload, if its handler here declares one."""
        return self._forms.get(kind) if self._forms and isinstance(kind, str) else None

    def kinds(self) -> list[str]:
        return list(self._by_kind)

    def capacity_of(self, kind: str, usual: int) -> int:
        """The bound on active jobs of a kind."""
        handler = self._by_kind.get(kind)
        return usual if handler is None or handler.capacity is None else handler.capacity

    def crowding(self, concurrency: int) -> str | None:
        """Return a warning if kinds may have to wait for one another in a process that runs this many jobs."""
        wanted = sum(handler.concurrency for handler in self)
        if wanted <= concurrency:
            return None
        return (
            f"the kinds of this process may run {wanted} jobs at once, and worker.concurrency allows {concurrency}: "
            "a slow kind may hold up the others; raise it, or lower the kinds' own limits (consumers, concurrency)"
        )

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._by_kind.values())

    def __len__(self) -> int:
        return len(self._by_kind)
