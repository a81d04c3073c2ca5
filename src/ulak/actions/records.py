"""Runs, steps and the directory as rows: loading and saving by named queries, nothing decided."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from ulak import codec
from ulak.actions.model import ActionRoute, ActionRun, ActionStep, RecipientChannel, RecipientProfile, StepTarget
from ulak.errors import NotFound
from ulak.spine.query import Queries
from ulak.spine.store import Tx

sql = Queries("ulak.actions")

NEWEST = 1 << 62
LOG_CHARS = 16_000  # of a step's decisions: a step that waits for ever must not grow for ever
Steps = dict[int, dict[int, ActionStep]]  # by run, by step_order


def lock_runs(tx: Tx, ids: Iterable[int]) -> dict[int, ActionRun]:
    """Held until the commit, in the order of their ids: two commits that end steps can't wait for each other."""
    return {row[0]: to_run(row) for row in tx.rows(sql.lock_runs, ids=sorted(set(ids)))}


def read_runs(tx: Tx, ids: Iterable[int]) -> dict[int, ActionRun]:
    return {row[0]: to_run(row) for row in tx.rows(sql.read_runs, ids=sorted(set(ids)))}


def read_run(tx: Tx, identifier: int) -> ActionRun:
    run = read_runs(tx, [identifier]).get(identifier)
    if run is None:
        raise missing_run(tx.ids.to_text(identifier))
    return run


def missing_run(name: object) -> NotFound:
    return NotFound(f"no run {name!s:.50}; it was never accepted here, or its history was pruned")


def to_run(row: tuple[object, ...]) -> ActionRun:
    run = ActionRun(*row)  # type: ignore[arg-type]
    run.critical = bool(run.critical)
    return run


def insert_runs(tx: Tx, runs: Sequence[ActionRun]) -> None:
    tx.insert_rows(sql.insert_runs, [_run_row(run) for run in runs])


def _run_row(run: ActionRun) -> tuple[object, ...]:
    row = list(msgspec.structs.astuple(run))
    row[4], row[11] = str(run.state), int(run.critical)
    return tuple(row)


def end_runs(tx: Tx, runs: Sequence[ActionRun]) -> None:
    tx.update_rows(sql.end_runs, [(str(run.state), run.ended_at, run.ended_by, run.id) for run in runs])


def read_steps(tx: Tx, runs: Iterable[int]) -> Steps:
    found: Steps = defaultdict(dict)
    for row in tx.rows(sql.read_steps, runs=sorted(set(runs))):
        found[row[0]][row[1]] = ActionStep(*row)
    return found


def save_steps(tx: Tx, steps: Iterable[ActionStep]) -> None:
    rows = {(step.run, step.step_order): msgspec.structs.astuple(step) for step in steps}
    if rows:
        tx.insert_rows(sql.save_steps, [rows[key] for key in sorted(rows)])


def note(step: ActionStep, at: int, decision: str, why: str) -> None:
    """One more line of what was decided about a step, with the job that it was about."""
    if len(step.log) < LOG_CHARS:
        step.log += codec.encode_text([at, decision, why, step.job]) + "\n"


def notes_of(step: ActionStep) -> list[tuple[int, str, str, int]]:
    return [tuple(codec.decode(line)) for line in step.log.split("\n")[:-1]]


def tried_by(step: ActionStep) -> set[int]:
    return set(codec.decode(step.tried))


def next_number(tx: Tx, name: str) -> int:
    """Ids of the document's tables: small numbers, never used twice."""
    row = tx.row(sql.next_number, name=name)
    assert row is not None
    return int(row[0])


def to_profile(row: tuple[object, ...]) -> RecipientProfile:
    identifier, device, name, status, *rest = row
    return RecipientProfile(identifier, device, name, bool(status), *rest)  # type: ignore[arg-type]


def to_channel(row: tuple[object, ...]) -> RecipientChannel:
    identifier, profile, kind, target, meta, enabled, *rest = row
    return RecipientChannel(
        identifier,  # type: ignore[arg-type]
        profile,  # type: ignore[arg-type]
        kind,  # type: ignore[arg-type]
        target,  # type: ignore[arg-type]
        codec.decode(meta),  # type: ignore[arg-type]
        bool(enabled),
        *rest,  # type: ignore[arg-type]
    )


def to_route(row: tuple[object, ...]) -> ActionRoute:
    identifier, plan, order, profile, kind, enabled, *rest = row
    return ActionRoute(identifier, plan, order, profile, kind, bool(enabled), *rest)  # type: ignore[arg-type]


def read_targets(tx: Tx, ids: Iterable[int]) -> dict[int, StepTarget]:
    """Channels by id, as a step would be sent to them."""
    found = {}
    for row in tx.rows(sql.read_targets, ids=sorted(set(ids))):
        identifier, profile, priority, kind, target, meta, enabled, verified, active, zone, quiet = row
        usable = bool(enabled) and bool(active) and verified == "verified"
        found[identifier] = StepTarget(None, profile, priority, identifier, kind, target, meta, usable, zone, quiet)
    return found
