"""A published figure: what was measured, against what, and whether the target is met."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from statistics import median
from typing import Any, TypeVar

from bench import postgres_server
from bench.load import percentile

T = TypeVar("T", int, float)
S = TypeVar("S")


@dataclass(frozen=True)
class Row:
    """One line of the table. `against` is a peer, a raw limit or the other half of a comparison with ourselves."""

    figure: str
    unit: str
    ulak: float | None
    against: str = ""
    other: float | None = None
    ratio: float | None = None
    target: str = ""
    met: bool | None = None
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass
class Bench:
    """How much effort a run takes, and the PostgreSQL server that its figures share (started when first asked for)."""

    quick: bool
    stack: ExitStack
    _server: postgres_server.Server | None = None

    @property
    def rounds(self) -> int:
        return 1 if self.quick else 5

    @property
    def seconds(self) -> float:
        return 0.5 if self.quick else 1.2

    def scaled(self, full: T, quick: T) -> T:
        return quick if self.quick else full

    @property
    def server(self) -> postgres_server.Server:
        if self._server is None:
            self._server = self.stack.enter_context(postgres_server.running())
        return self._server


Figures = Callable[[Bench], Iterator[Row]]


def alternate(rounds: int, sides: Mapping[str, Callable[[], S]], order: Random | None = None) -> dict[str, list[S]]:
    """Measure the sides in turn, round after round, so that a change of the machine's load meets all of them.

    With `order`, each round has another one: then nobody always comes after the same neighbour.
    """
    samples: dict[str, list[S]] = {name: [] for name in sides}
    names = list(sides)
    for _ in range(rounds):
        if order is not None:
            order.shuffle(names)
        for name in names:
            samples[name].append(sides[name]())
    return samples


def compared(
    figure: str, unit: str, samples: dict[str, list[float]], at_least: dict[str, float] | None = None
) -> Iterator[Row]:
    """A row for each peer: the median of the rounds' ratios, and the ratio that was promised.

    Within a round the sides run one after another, so what the machine's other guests do meets both; medians of each
    side alone would compare moments that are minutes apart.
    """
    ulak = median(samples["Ulak"])
    for name, values in samples.items():
        if name == "Ulak":
            continue
        other = median(values)
        promised = (at_least or {}).get(name)
        ratio = paired(samples["Ulak"], values)
        yield Row(
            figure,
            unit,
            ulak,
            against=name,
            other=other,
            ratio=ratio,
            target="" if promised is None else f"≥ {_times(promised)}",
            met=None if promised is None else ratio >= promised,
            detail={"samples": {"Ulak": samples["Ulak"], name: values}},
        )


def paired(ours: list[float], theirs: list[float]) -> float:
    """The median of the rounds' ratios."""
    return median(one / other for one, other in zip(ours, theirs, strict=True))


def tails(figure: str, rounds: list[list[float]], at_most: float | None = None) -> Iterator[Row]:
    """p50 and p99 of milliseconds: of each round, and of those the median. A disk that stalls once spoils one round."""
    for percent, limit in ((50, None), (99, at_most)):
        found = [percentile(took, percent) for took in rounds]
        longest = max(map(max, rounds))
        samples = sum(map(len, rounds))
        yield bounded(f"{figure}, p{percent}", "ms", median(found), limit, rounds=found, max=longest, samples=samples)


def bounded(figure: str, unit: str, value: float, at_most: float | None = None, **detail: Any) -> Row:
    """A row for a figure that has a limit instead of a peer."""
    if at_most is None:
        return Row(figure, unit, value, detail=detail)
    return Row(
        figure,
        unit,
        value,
        against="limit",
        other=at_most,
        ratio=value / at_most,
        target=f"≤ {at_most:g} {unit}",
        met=value <= at_most,
        detail=detail,
    )


def _times(ratio: float) -> str:
    return f"{ratio:g} ×" if ratio >= 1 else f"{ratio:.0%}"
