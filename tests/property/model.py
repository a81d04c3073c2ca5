"""The spine as it should be, in plain Python: jobs in dictionaries, one rule at a time, nothing merged or fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ulak import codec
from ulak.ids import EPOCH_MILLIS
from ulak.spine.job import BEHIND, DEFERRED, LEASED, READY, SUSPECT, Row
from ulak.spine.outcome import Cancel, Dead, Done, Release, Retry, Settlement, Snooze
from ulak.spine.rotation import Rotation
from ulak.spine.units.timers import AHEAD_MILLIS, SLACK_MILLIS

Said = tuple[str, int, str]

_LAST_TURN = 1 << 62


@dataclass
class Piece:
    """A job. `holds` tells whether it has one of its key's slots; which one does not matter."""

    id: int
    kind: str
    key: str | None
    slots: int
    prio: int
    due_at: int
    expires_at: int | None
    unique_key: str | None
    continuation: str | None
    hold: bool
    payload: bytes
    turn: int = 0
    state: int = READY
    holds: bool = False
    attempt: int = 0
    crashes: int = 0
    epoch: int = 0
    owner: int | None = None
    cancelled: bool = False

    @classmethod
    def of(cls, row: Row) -> Piece:
        return cls(
            row.id, row.kind, row.key, row.slots, row.prio, row.due_at, row.expires_at, row.unique_key,
            row.continuation, bool(row.hold), row.payload, row.id,
        )  # fmt: skip

    @property
    def place_in_line(self) -> tuple[int, int]:
        """One slot is order, so priority does not count; in a bulkhead the urgent go first."""
        return (self.prio if self.slots > 1 else 0, self.turn)


@dataclass
class Ended:
    piece: Piece
    word: str
    at: int
    error_class: str = ""


@dataclass
class Bucket:
    tokens: float
    filled_at: int


@dataclass
class Model:
    """All jobs, and what was said and counted about them. `owed` are jobs that the store makes by itself."""

    active_bound: Callable[[str], int]
    live_bound: Callable[[str], int]
    live: dict[int, Piece] = field(default_factory=dict)
    past: dict[int, Ended] = field(default_factory=dict)
    dead: dict[int, Ended] = field(default_factory=dict)
    said: list[Said] = field(default_factory=list)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    owed: list[tuple[str, int, Any]] = field(default_factory=list)
    buckets: dict[str, Bucket] = field(default_factory=dict)
    rotations: dict[str, Rotation] = field(default_factory=dict)
    turned: set[int] = field(default_factory=set)  # in this step, those that went to the end of their line

    # Saying and finding

    def _say(self, word: str, piece: Piece, *, counted: bool = True) -> None:
        self.said.append((word, piece.id, piece.kind))
        if counted:
            self.counts[(word, piece.kind)] += 1

    def among(self, state: int) -> list[Piece]:
        return [piece for piece in self.live.values() if piece.state == state]

    def free(self, kind: str) -> tuple[int, int]:
        """Of its active bound, which owed work may exceed, and of its bound on all that live."""
        states = [piece.state for piece in self.live.values() if piece.kind == kind]
        return self.active_bound(kind) - sum(map(_is_active, states)), self.live_bound(kind) - len(states)

    def parked(self, key: str) -> int:
        return sum(piece.key == key and not _is_active(piece.state) for piece in self.live.values())

    def holder_of(self, kind: str, unique_key: str | None) -> int | None:
        same = (piece.id for piece in self.live.values() if (piece.kind, piece.unique_key) == (kind, unique_key))
        return None if unique_key is None else next(same, None)

    def _turn(self, piece: Piece) -> None:
        """To the end of all, until the store's own number is known."""
        piece.turn = _LAST_TURN + len(self.turned)
        self.turned.add(piece.id)

    # Accepting

    def enqueue(self, rows: Sequence[Row], now: int) -> list[int] | set[tuple[str, bool, str | None, int]]:
        """All or none: a row whose unique key is taken answers its holder and takes no capacity.

        At a bound: each kind that has too little, whether of its live bound or of which key's share, and what it was
        asked for.
        """
        ids: list[int] = []
        fresh: dict[tuple[str, str | int], Row] = {}
        for row in rows:
            name = (row.kind, row.unique_key or row.id)
            holder = self.holder_of(row.kind, row.unique_key)
            ids.append(fresh.setdefault(name, row).id if holder is None else holder)
        before = {row.kind: self.free(row.kind) for row in fresh.values()}
        parked = {row.key: self.parked(row.key) for row in fresh.values() if row.key is not None}
        pieces = [Piece.of(row) for row in fresh.values()]
        for piece in pieces:
            self._enter(piece, now)
        crowded = {one for kind, free in before.items() for one in self._crowded(pieces, kind, free, parked)}
        if crowded:
            for piece in pieces:
                del self.live[piece.id]
            return crowded
        for piece in pieces:
            self._say("accepted", piece)
        return ids

    def _crowded(
        self, pieces: list[Piece], kind: str, free: tuple[int, int], parked: dict[str, int]
    ) -> Iterable[tuple[str, bool, str | None, int]]:
        mine = [piece for piece in pieces if piece.kind == kind]
        active = sum(_is_active(piece.state) for piece in mine)
        if active > free[0] and active:
            yield kind, False, None, active
        if len(mine) > free[1]:
            yield kind, True, None, len(mine)
            return
        keys = Counter(piece.key for piece in mine if piece.key is not None and not _is_active(piece.state))
        for key, number in keys.items():
            if parked[key] + number + len(mine) - 1 > free[1]:
                yield kind, True, key, number + len(mine) - 1

    def accept(self, piece: Piece, now: int) -> None:
        self._enter(piece, now)
        self._say("accepted", piece)

    def _enter(self, piece: Piece, now: int) -> None:
        self.live[piece.id] = piece
        if piece.due_at > now:
            piece.state = DEFERRED
        else:
            self._join_line(piece)

    def _join_line(self, piece: Piece) -> None:
        """A slot if one is free, otherwise behind the others of the key."""
        if piece.key is None:
            piece.state = READY
            return
        holding = sum(other.key == piece.key and other.holds for other in self.live.values())
        piece.holds = holding < piece.slots
        piece.state = BEHIND if not piece.holds else SUSPECT if piece.crashes else READY

    # Running

    def claim(self, owner: int, kind: str, free: int, levels: tuple[int, ...], now: int) -> tuple[list[int], int]:
        """By shares: a part of the capacity for the level whose turn it is, the rest by priority, each level by age."""
        level, share = self.rotations.setdefault(kind, Rotation()).favour(free, levels)
        chosen: list[Piece] = []
        for prio, most in [(level, share), *((prio, free) for prio in levels)]:
            waiting = [piece for piece in self.among(READY) if (piece.kind, piece.prio) == (kind, prio)]
            waiting = sorted((piece for piece in waiting if piece not in chosen), key=lambda piece: piece.turn)
            chosen += waiting[: max(min(most, free - len(chosen)), 0)]
        return self._start(chosen, owner, now), len(chosen)

    def spend(self, kind: str, rate: float, wanted: int, now: int) -> int:
        burst = max(rate, 1.0)
        bucket = self.buckets.setdefault(kind, Bucket(burst, now))
        bucket.tokens = min(burst, bucket.tokens + (now - bucket.filled_at) / 1000 * rate)
        bucket.filled_at = now
        taken = min(wanted, int(bucket.tokens))
        bucket.tokens -= taken
        return taken

    def claim_suspects(self, owner: int, kinds: Iterable[str], number: int, now: int, *, alone: bool) -> list[int]:
        found = [piece for piece in self.among(SUSPECT) if piece.kind in kinds and (piece.crashes >= 2) is alone]
        return sorted(self._start(sorted(found, key=lambda one: (one.crashes, one.turn))[:number], owner, now))

    def _start(self, chosen: list[Piece], owner: int, now: int) -> list[int]:
        started = []
        for piece in chosen:
            piece.attempt, piece.epoch = piece.attempt + 1, piece.epoch + 1
            piece.state, piece.owner = LEASED, owner
            if piece.expires_at is not None and piece.expires_at <= max(now, piece.due_at):
                self._end(piece, "expired", now)
            else:
                self._say("started", piece, counted=False)
                started.append(piece.id)
        return started

    # Ending an attempt

    def settle(self, settlements: Iterable[Settlement], now: int) -> set[tuple[int, int]]:
        kept = set()
        for one in settlements:
            piece = self.live.get(one.id)
            if piece is not None and piece.state == LEASED and piece.epoch == one.epoch:
                kept.add((one.id, one.epoch))
                self._settle(piece, one, now)
        return kept

    def _settle(self, piece: Piece, one: Settlement, now: int) -> None:
        outcome = one.outcome
        if isinstance(outcome, Done):
            self._end(piece, "done", now, outcome.result)
        elif isinstance(outcome, Cancel):
            self._end(piece, "cancelled", now, {"reason": outcome.reason})
        elif isinstance(outcome, Dead):
            self._bury(piece, outcome.cause, outcome.error_class, now)
        elif piece.cancelled:
            self._end(piece, "cancelled", now)
        elif isinstance(outcome, Release):
            self._say("released", piece, counted=False)
            self._come_back(piece, SUSPECT if piece.crashes else READY)
            piece.attempt -= 1
        else:
            assert isinstance(outcome, Retry | Snooze)
            self._say("snoozed" if isinstance(outcome, Snooze) else "retried", piece)
            self._come_back(piece, DEFERRED)
            piece.due_at = one.resume_at
            if piece.slots > 1 and not (isinstance(outcome, Snooze) and outcome.holds):
                self._hand_on(piece)
            piece.attempt -= isinstance(outcome, Snooze)

    def _come_back(self, piece: Piece, state: int) -> None:
        """The slot is kept, for now."""
        piece.state, piece.owner = state, None

    def _end(self, piece: Piece, word: str, now: int, detail: Any = None) -> None:
        self.past[piece.id] = Ended(piece, word, now)
        self._leave(piece, word, detail)

    def _bury(self, piece: Piece, cause: str, error_class: str, now: int) -> None:
        self.dead[piece.id] = Ended(piece, "dead", now, error_class)
        self._count_death(piece, error_class, 1)
        self._leave(piece, "dead", {"cause": cause, "error_class": error_class})

    def _count_death(self, piece: Piece, error_class: str, number: int) -> None:
        word = {"permanent": "failed", "uncertain": "held"}.get(error_class)
        if word is not None:
            self.counts[(word, piece.kind)] += number

    def _leave(self, piece: Piece, word: str, detail: Any) -> None:
        del self.live[piece.id]
        self._say(word, piece)
        if piece.continuation is not None:
            message = {
                "job": piece.id, "kind": piece.kind, "outcome": word, "attempt": piece.attempt, "detail": detail,
                "payload": codec.decode(piece.payload),
            }  # fmt: skip
            self.owed.append((piece.continuation, piece.prio, message))
        self._hand_on(piece)

    def _hand_on(self, piece: Piece) -> None:
        behind = [other for other in self.among(BEHIND) if other.key == piece.key]
        held, piece.holds = piece.holds, False
        if held and behind:
            following = min(behind, key=lambda other: other.place_in_line)
            following.holds, following.state = True, SUSPECT if following.crashes else READY
            self._turn(following)

    # Time, death and people

    def promote_due(self, now: int, ahead: Collection[str] = ()) -> int | None:
        """What is due; of the kinds in `ahead` also what is due soon, if it has no key and never crashed."""
        until, slack = (now + AHEAD_MILLIS, SLACK_MILLIS) if ahead else (now, 0)
        due = [
            piece
            for piece in self.among(DEFERRED)
            if piece.due_at <= now
            or (piece.due_at <= until and piece.kind in ahead and piece.key is None and not piece.crashes)
        ]
        due.sort(key=lambda piece: (piece.key is not None and not piece.holds, piece.due_at, piece.id))
        for piece in due:
            self._turn(piece)
            if piece.key is None or piece.holds:
                piece.state = SUSPECT if piece.crashes else READY
            else:
                self._join_line(piece)
        following = min((piece.due_at for piece in self.among(DEFERRED)), default=None)
        if following is None or following > until:
            return None if following is None else following - slack
        return min(following, until - slack)

    def rescue(self, owner: int, poison_deaths: int, now: int) -> int:
        mine = sorted((piece for piece in self.among(LEASED) if piece.owner == owner), key=lambda piece: piece.id)
        for piece in mine:
            self._say("uncertain", piece)
            piece.crashes += 1
        for piece in mine:
            if piece.cancelled:
                self._end(piece, "cancelled", now, {"reason": "cancelled while its process died"})
            elif piece.hold:
                cause = "the process died during this attempt; it may have had its effect and waits for a decision"
                self._bury(piece, cause, "uncertain", now)
            elif piece.crashes >= poison_deaths:
                cause = f"poison: the process died {piece.crashes} times while this job was running"
                self._bury(piece, cause, "poison", now)
            else:
                self._come_back(piece, SUSPECT)
        return len(mine)

    def cancel(self, identifier: int, now: int) -> str:
        piece = self.live.get(identifier)
        if piece is None:
            return "finished"
        if piece.state == LEASED:
            piece.cancelled = True
            return "cancelling"
        self._end(piece, "cancelled", now)
        return "cancelled"

    def redrive(self, ids: Iterable[int], now: int) -> list[int]:
        back = []
        for identifier in sorted(set(ids) & set(self.dead)):
            letter = self.dead[identifier]
            if self.holder_of(letter.piece.kind, letter.piece.unique_key) is None:
                del self.dead[identifier]
                self._redrive(letter, now)
                back.append(identifier)
        return back

    def _redrive(self, letter: Ended, now: int) -> None:
        expires_at = letter.piece.expires_at
        again = replace(
            letter.piece, state=READY, holds=False, attempt=0, owner=None, cancelled=False, due_at=now,
            crashes=int(letter.piece.crashes > 0 or letter.error_class == "uncertain"),
            expires_at=None if expires_at is not None and expires_at <= now else expires_at,
        )  # fmt: skip
        self._turn(again)
        self.accept(again, now)
        if again.crashes and again.state == READY:
            again.state = SUSPECT
        self.counts[("accepted", again.kind)] -= 1
        self._count_death(again, letter.error_class, -1)
        self._say("redriven", again)

    def prune(self, now: int, history: int, dead: int) -> tuple[int, int]:
        first_id = max(now - history - EPOCH_MILLIS, 0) << 22
        old = [one.piece.id for one in self.past.values() if one.at < now - history and one.piece.id < first_id]
        forgotten = [one.piece.id for one in self.dead.values() if one.at < now - dead]
        for identifier in old:
            del self.past[identifier]
        for identifier in forgotten:
            del self.dead[identifier]
        return len(old), len(forgotten)


def _is_active(state: int) -> bool:
    return state in (READY, LEASED, SUSPECT)


def replay(said: Iterable[Said]) -> dict[int, str]:
    """Where each job stands, from its events alone."""
    states: dict[int, str] = {}
    for word, identifier, _ in said:
        states[identifier] = {
            "started": "running", "done": "done", "cancelled": "cancelled", "expired": "expired", "dead": "dead",
        }.get(word, "waiting")  # fmt: skip
    return states
