"""Is it well? The facts about a running Ulak or its store, and the one-line verdict on them. It asks nobody itself."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Word = Literal["well", "attention", "ill", "stopped"]

STATES = ("ready", "running", "deferred", "behind", "suspect")
NEARLY_FULL = 0.9
MAX_DEAD = 100  # letters that are counted; beyond that there are simply many


class Observed(msgspec.Struct, frozen=True, rename="camel"):
    """A look at a server. `problem` is why it takes no work, `reasons` are its complaints though it does."""

    place: str
    is_running: bool
    states: dict[str, int]
    accounted: bool
    done: int = 0
    uncertain: int = 0
    dead: int = 0
    held: int = 0  # after a restore
    oldest_seconds: float | None = None
    problem: str | None = None
    reasons: tuple[str, ...] = ()
    breakers: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    rooms: dict[str, dict[str, int]] = {}
    simulated: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()

    @property
    def waiting(self) -> int:
        return sum(self.states.values()) - self.states.get("running", 0)


class Judgement(msgspec.Struct, frozen=True):
    """`attention`: it works, and something waits for a person. `stopped`: no process works on the store."""

    verdict: Word
    sentence: str
    findings: list[str]

    @property
    def exit_code(self) -> int:
        return 0 if self.verdict in {"well", "attention"} else 1


def judge(facts: Observed) -> Judgement:
    ill, findings = _illnesses(facts), _findings(facts)
    if ill:
        return Judgement("ill", f"Not well: {ill[0]}.", [*ill, *findings])
    if not facts.is_running:
        left = f"{_jobs(facts.waiting)} waiting" if facts.waiting else "nothing waits"
        return Judgement("stopped", f"Stopped: no process works on this store, {left}. Start one: ulak serve", findings)
    if findings:
        more = f" (and {len(findings) - 1} more below)" if len(findings) > 1 else ""
        return Judgement("attention", f"Works, but look: {findings[0]}{more}.", findings)
    return Judgement("well", f"Well: {_jobs(facts.done)} done, {facts.waiting:,} waiting, none lost.", [])


def _illnesses(facts: Observed) -> list[str]:
    found = [] if facts.problem is None else [facts.problem.rstrip(".")]
    if not facts.accounted:
        found.append("accepted jobs are not accounted for; see ulak db check")
    return found


def _findings(facts: Observed) -> list[str]:
    found = list(facts.reasons)
    if facts.dead:
        count = f"more than {MAX_DEAD}" if facts.dead > MAX_DEAD else str(facts.dead)
        found.append(f"{count} dead letter{_s(facts.dead)} (ulak dead list)")
    if facts.held:
        found.append(f"{_jobs(facts.held)} held after a restore (ulak db resume)")
    if facts.breakers:
        found.append(f"{len(facts.breakers)} destination{_s(len(facts.breakers))} closed off (ulak breakers list)")
    found += [f"{pool} is nearly full" for pool in facts.pools]
    return found


def _jobs(number: int) -> str:
    return f"{number:,} job{_s(number)}"


def _s(number: int) -> str:
    return "" if number == 1 else "s"


def screen(facts: Observed, verdict: Judgement) -> list[str]:
    """The verdict, then the facts behind it: about a dozen lines."""
    jobs = " · ".join(f"{name} {facts.states.get(name, 0):,}" for name in STATES)
    lines = [verdict.sentence, *(f"  look      {one}" for one in verdict.findings)]
    lines += [f"  where     {facts.place}", f"  jobs      {jobs}"]
    if facts.oldest_seconds is not None:
        lines.append(f"  oldest    waits for {_span(facts.oldest_seconds)}")
    dead = f"{'over ' if facts.dead > MAX_DEAD else ''}{facts.dead:,} dead letter{_s(facts.dead)}"
    uncertain = f"{facts.uncertain:,} uncertain attempt{_s(facts.uncertain)}"
    lines.append(f"  ended     {facts.done:,} done · {dead} · {uncertain}")
    lines += [f"  {name:<9} {_room(counts)}" for name, counts in facts.rooms.items()]
    if facts.simulated:
        lines.append(f"  simulated {', '.join(facts.simulated)}: nothing leaves the machine")
    lines += [f"  breaker   {one}" for one in facts.breakers[:5]]
    return lines + [f"  worker    {one}" for one in facts.workers[:5]]


def _room(counts: dict[str, Any]) -> str:
    return " · ".join(f"{name} {counts.get(name, 0):,}" for name in ("waiting", "running", "done"))


def _span(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def pools_nearly_full(pools: list[dict[str, Any]]) -> tuple[str, ...]:
    return tuple(
        f"{one['kind']} ({one['active']:,} of {one['capacity']:,} active jobs)"
        for one in pools
        if one["active"] >= NEARLY_FULL * one["capacity"]
    )
