"""The workbench of dead letters: the spine's, of `actions.*`, in the room's own words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from ulak import codec, faults
from ulak.actions.model import REASONS, ActionRun, ActionStep
from ulak.actions.plans.document import MAX_TEXT, looked_at
from ulak.actions.plans.render import check_text
from ulak.actions.records import read_runs, save_steps
from ulak.actions.steps.results import dead_letter
from ulak.actions.wire.events import ActionDeadLetter
from ulak.actions.wire.request import encode_variables
from ulak.errors import NotFound
from ulak.spine.query import Queries
from ulak.spine.store import Tx
from ulak.spine.units import dead_letters
from ulak.spine.units.audit import record as record_audit
from ulak.spine.units.records import read_record

sql = Queries("ulak.actions")

SEARCH_PAGE = 500
MAX_COUNTED = 100_000


class DeadFilter(NamedTuple):
    """Which dead letters: all that is given must fit."""

    error_code: str | None = None
    reason: str | None = None


class Mending(msgspec.Struct, forbid_unknown_fields=True):
    """The fields that may be mended before a letter is sent again; a wrong address is mended in the directory."""

    variables: dict[str, Any] | None = None
    subject: Annotated[str, Meta(max_length=998)] | None = None
    body: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)] | None = None


MENDED = frozenset(Mending.__struct_fields__)


def parse_mending(document: Any) -> Mending:
    problems = faults.of_document(document, Mending)
    if not problems:
        encode_variables(document.get("variables"), "the dead letter", "variables")
        texts = [(name, document[name]) for name in ("subject", "body") if document.get(name) is not None]
        problems = [problem for name, text in texts for problem in looked_at(text, check_text, name)]
    if problems:
        raise faults.refusal("the dead letter", problems)
    return msgspec.convert(document, Mending)


def check_reason(reason: str | None) -> None:
    if reason is not None and reason not in REASONS:
        raise faults.refusal("the filter", [("reason", f"must be one of {', '.join(REASONS)}")])


def _find(tx: Tx, wanted: DeadFilter, after: int, limit: int) -> list[ActionStep]:
    """Steps whose dead letters are still there, oldest first."""
    found: list[ActionStep] = []
    while len(found) < limit:
        rows = tx.rows(
            sql.list_dead_steps, after=after, error_code=wanted.error_code, reason=wanted.reason, n=SEARCH_PAGE
        )
        found += [step for row in rows if _is_dead(tx, (step := ActionStep(*row)).job)]
        if len(rows) < SEARCH_PAGE:
            break
        after = rows[-1][4]
    return found[:limit]


def _is_dead(tx: Tx, job: int) -> bool:
    record = read_record(tx, job)
    return record is not None and record.status == "dead"


def list_letters(tx: Tx, wanted: DeadFilter, after: int, limit: int) -> list[ActionDeadLetter]:
    steps = _find(tx, wanted, after, limit)
    runs = read_runs(tx, (step.run for step in steps))
    return [dead_letter(runs[step.run], step, tx.ids) for step in steps if step.run in runs]


def find_letters(tx: Tx, wanted: DeadFilter, after: int, limit: int) -> list[int]:
    return [step.job for step in _find(tx, wanted, after, limit)]


def read_letter(tx: Tx, identifier: int) -> tuple[ActionRun, ActionStep]:
    rows = tx.rows(sql.find_steps_by_job, jobs=[identifier])
    runs = read_runs(tx, (row[0] for row in rows))
    if not rows or rows[0][0] not in runs or not _is_dead(tx, identifier):
        raise NotFound(f"no dead letter {identifier}; it may have been sent again already")
    return runs[rows[0][0]], ActionStep(*rows[0])


def show_letter(tx: Tx, identifier: int) -> ActionDeadLetter:
    return dead_letter(*read_letter(tx, identifier), tx.ids)


def list_causes(tx: Tx) -> list[dict[str, Any]]:
    """How many letters have the same cause, the most first."""
    causes: dict[tuple[str, str, str], dict[str, Any]] = {}
    for step in _find(tx, DeadFilter(), 0, MAX_COUNTED):
        key = (step.error_code or "", step.reason or "", step.channel_type)
        cause = causes.setdefault(
            key, {"error_code": key[0], "reason": key[1], "channel_type": key[2], "number": 0, "example": str(step.job)}
        )
        cause["number"] += 1
    return sorted(causes.values(), key=lambda cause: -cause["number"])


def mend_letter(tx: Tx, identifier: int, mending: Mending, who: str) -> ActionDeadLetter:
    run, step = read_letter(tx, identifier)
    record = read_record(tx, identifier)
    assert record is not None
    payload = record.payload | {
        name: value for name, value in msgspec.structs.asdict(mending).items() if value is not None
    }
    dead_letters.edit(tx, identifier, codec.encode(payload))
    record_audit(tx, who, "actions.dead_letter.mended", f"dead letter {identifier}")
    return dead_letter(run, step, tx.ids)


def forget_mending(tx: Tx, identifier: int) -> None:
    """Take out of a dead letter what it was mended with."""
    record = read_record(tx, identifier)
    if record is not None and record.status == "dead" and not record.payload.keys().isdisjoint(MENDED):
        kept = {name: value for name, value in record.payload.items() if name not in MENDED}
        dead_letters.edit(tx, identifier, codec.encode(kept))


def redrive_letters(tx: Tx, who: str, identifiers: Sequence[int]) -> list[int]:
    """Back to work under their old ids, so with the same idempotency keys; return those that went."""
    steps = {row[4]: ActionStep(*row) for row in tx.rows(sql.find_steps_by_job, jobs=list(identifiers))}
    went = dead_letters.redrive(tx, [job for job in identifiers if job in steps])
    for job in went:
        steps[job].reason = None
        record_audit(tx, who, "actions.dead_letter.redriven", f"dead letter {job}")
    save_steps(tx, [steps[job] for job in went])
    return went
