"""Watches and rules: changes that become signed webhooks or jobs. Each change is looked at once, in the log's order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ulak import codec
from ulak.changes import answers, records
from ulak.changes.model import ANNOUNCE, ChangeType, Version
from ulak.changes.sources.source import FeedForm
from ulak.changes.state import to_identifier
from ulak.channels.signature import new_secret
from ulak.errors import Conflict, NotFound, Refused
from ulak.settings import Rule
from ulak.spine.job import NewJob
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units.enqueue import Full, enqueue_rows
from ulak.spine.validate import to_rows

sql = Queries(__package__)

SLICE = 200
MAX_WATCHES = 1000  # of a feed: each is looked at for every part of the log


@dataclass(frozen=True, slots=True)
class Watch:
    id: int
    feed: str
    keys: frozenset[str]
    fields: frozenset[str]
    webhook: str | None
    kind: str | None
    secret: str | None
    made_at: int


def add_watch(
    tx: Tx, feed: str, keys: Sequence[str], fields: Sequence[str], webhook: str | None, kind: str | None
) -> Watch:
    if len(tx.rows(sql.list_watches, feed=feed)) >= MAX_WATCHES:
        raise Conflict(f"{feed} has {MAX_WATCHES} watches, and takes no more; end one first")
    identifier = tx.ids.take(tx.now)
    secret = new_secret() if webhook else None
    tx.execute(
        sql.add_watch,
        id=identifier,
        feed=feed,
        keys=codec.encode_text(sorted(set(keys))),
        fields=codec.encode_text(sorted(set(fields))),
        webhook=webhook,
        kind=kind,
        secret=secret,
        now=tx.now,
    )
    return Watch(identifier, feed, frozenset(keys), frozenset(fields), webhook, kind, secret, tx.now)


def list_watches(tx: Tx, feed: str) -> list[Watch]:
    return [_watch(row) for row in tx.rows(sql.list_watches, feed=feed)]


def find_watch(tx: Tx, feed: str, identifier: int) -> Watch | None:
    row = tx.row(sql.read_watch, feed=feed, id=identifier)
    return None if row is None else _watch(row)


def drop_watch(tx: Tx, feed: str, identifier: int) -> None:
    if not tx.execute(sql.delete_watch, feed=feed, id=identifier):
        raise NotFound(f"{feed} has no watch {tx.ids.to_text(identifier)}")


def _watch(row: tuple[Any, ...]) -> Watch:
    identifier, feed, keys, fields, webhook, kind, secret, made_at = row
    return Watch(
        identifier, feed, frozenset(codec.decode(keys)), frozenset(codec.decode(fields)), webhook, kind, secret, made_at
    )


def jobs_for(
    form: FeedForm,
    epoch: str,
    versions: Sequence[Version],
    rules: Iterable[Rule],
    watches: Iterable[Watch],
    name_of: Callable[[int], str],
) -> list[NewJob]:
    """Return the jobs that a part of the log asks for: one for each rule and change, one for each watch and part."""
    told = [answers.detailed(form, version, epoch) for version in versions]
    jobs = [
        NewJob(rule.kind, {"feed": form.name, "change": one}, unique_key=f"{form.name}:{number}:{one['cursor']}")
        for number, rule in enumerate(rules)
        if rule.feed == form.name
        for one, version in zip(told, versions, strict=True)
        if _fits(rule.change, frozenset(rule.fields), one, version)
    ]
    for watch in watches:
        wanted = [
            one
            for one, version in zip(told, versions, strict=True)
            if (not watch.keys or to_identifier(version.key) in watch.keys) and _fits("", watch.fields, one, version)
        ]
        jobs += _watched(form, watch, name_of(watch.id), wanted)
    return jobs


def _fits(change: str, fields: frozenset[str], told: Mapping[str, Any], version: Version) -> bool:
    if change and told["changeType"] != change:
        return False
    return not fields or version.change != ChangeType.MODIFIED or not fields.isdisjoint(told["changedFields"])


def _watched(form: FeedForm, watch: Watch, name: str, changes: list[dict[str, Any]]) -> list[NewJob]:
    if not changes:
        return []
    told = {"feed": form.name, "watch": name, "cursor": changes[-1]["cursor"], "changes": changes}
    mark = f"{name}:{told['cursor']}"
    if watch.kind:
        return [NewJob(watch.kind, told, unique_key=f"watch:{mark}")]
    return [NewJob(ANNOUNCE, {"watch": watch.id, "feed": form.name, "body": told}, unique_key=mark)]


def fan_out(tx: Tx, feed: str, was: int, end: int, jobs: Sequence[NewJob]) -> bool:
    """Enqueue the jobs of a part of the log and step over it; False when another process did that."""
    if not tx.execute(records.sql.move_fan, name=feed, was=was, pos=end):
        return False
    if jobs:
        verdict = enqueue_rows(tx, to_rows(jobs, tx.ids, tx.now))
        if isinstance(verdict, Full):
            raise Refused(f"{verdict.kind} takes no more jobs for now")  # undoes the step
    return True
