"""The room's part of /metrics, and why a registry is stale: kept in memory, taken from the store now and then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ulak.changes import records
from ulak.changes.model import Feed, SyncVerdict
from ulak.changes.records import RegistryRow
from ulak.changes.registry import Registries
from ulak.changes.syncing.comparing import Facts
from ulak.changes.syncing.publication import Ending
from ulak.clock import Clock
from ulak.settings import Changes as Section
from ulak.spine.store import Tx
from ulak.spine.telemetry import GaugePoint

SEEDS_OWN = "gibuserlist_sync_removal_skipped_total"  # the seed's name for it
HELP = {
    "changes_head": "Position of the newest change of a feed.",
    "changes_count": "Records that a feed has.",
    "changes_seen_age_seconds": "Since the last list of a registry was looked at, whatever became of it.",
    "changes_published_age_seconds": "Since the last list of a registry was accepted.",
    "changes_guard_percent": "What each guard saw at the last sync of this process.",
    "changes_records": "Records in each file at the last sync of this process.",
    "changes_bytes": "Size of each file at the last sync of this process.",
    "changes_parse_failures": "Records that could not be read at the last sync of this process.",
    "changes_step_seconds": "How long each step took at the last sync of this process.",
    "changes_mixed_records": "Records merged of values from different files at the last sync of this process.",
    "changes_fan_out_lag": "Changes that watches and rules have not seen yet.",
    "changes_syncs_total": "Syncs that ended in this process, by verdict.",
}


class ChangesGauges:
    def __init__(self, clock: Clock, section: Section, registries: Registries) -> None:
        self._clock = clock
        self._section = section
        self._registries = registries
        self._facts: dict[str, Facts] = {}
        self._verdicts: dict[tuple[str, str], int] = {}
        self.withheld = 0
        self.feeds: dict[str, Feed] = {}
        self._rows: dict[str, RegistryRow] = {}

    def note(self, registry: str, facts: Facts, ending: Ending) -> None:
        self._facts[registry] = facts
        name = (registry, ending.verdict.value)
        self._verdicts[name] = self._verdicts.get(name, 0) + 1
        if ending.verdict is SyncVerdict.WITHHELD:
            self.withheld += sum(bool(change.withheld) for change in ending.changes.values())

    def take(self, tx: Tx) -> None:
        """A look at the store; re-runnable, and the last one counts."""
        self.feeds = records.read_feeds(tx)
        rows = {name: records.read_registry(tx, name) for name in self._registries.by_name}
        self._rows = {name: row for name, row in rows.items() if row is not None}

    def points(self) -> Iterator[GaugePoint]:
        for name, labels, value in self._points():
            yield GaugePoint(f"ulak_{name}", HELP[name], labels, value)
        yield GaugePoint(SEEDS_OWN, "Feeds whose removals a sync of this process withheld.", {}, self.withheld)

    def _points(self) -> Iterator[tuple[str, dict[str, str], float]]:
        now = self._clock.now()
        for feed in self.feeds.values():
            yield "changes_head", {"feed": feed.name}, feed.head_pos
            yield "changes_count", {"feed": feed.name}, feed.count
            yield "changes_fan_out_lag", {"feed": feed.name}, max(feed.head_pos - feed.fan_pos, 0)
        for name, row in self._rows.items():
            if row.seen_at is not None:
                yield "changes_seen_age_seconds", {"registry": name}, max(now - row.seen_at, 0) / 1000
            if row.published_at is not None:
                yield "changes_published_age_seconds", {"registry": name}, max(now - row.published_at, 0) / 1000
        for name, facts in self._facts.items():
            yield from _of_facts(name, facts)
        for (name, verdict), number in self._verdicts.items():
            yield "changes_syncs_total", {"registry": name, "verdict": verdict}, number

    def reasons(self) -> Iterable[str]:
        """Registries with a cron whose last accepted list is too old, or which failed before there was one."""
        now, limit = self._clock.now(), self._section.stale_hours * 3_600_000
        for name, entry in self._registries.by_name.items():
            row = self._rows.get(name)
            if not entry.cron or row is None or row.seen_at is None:
                continue
            if row.published_at is None:
                yield f"no list of {name} was published yet; see ulak changes list {name}"
            elif now - row.published_at > limit:
                hours = (now - row.published_at) / 3_600_000
                yield f"the list of {name} is {hours:.0f} h old; see ulak changes list {name}"


def _of_facts(registry: str, facts: Facts) -> Iterator[tuple[str, dict[str, str], float]]:
    label = {"registry": registry}
    for (feed, guard), value in facts.guards.items():
        yield "changes_guard_percent", {"feed": feed, "guard": guard}, value
    for word, values in (("records", facts.records), ("bytes", facts.bytes), ("parse_failures", facts.bad)):
        for role, number in values.items():
            yield f"changes_{word}", {**label, "file": role}, number
    for step, seconds in facts.steps.items():
        yield "changes_step_seconds", {**label, "step": step}, seconds
    yield "changes_mixed_records", label, facts.mixed
