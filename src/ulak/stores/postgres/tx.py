"""PostgreSQL's transaction: arrays for many rows, key locks that can't deadlock, and capacity from credits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from psycopg import Cursor

from ulak.ids import Ids
from ulak.spine.job import Lease, Row
from ulak.spine.outcome import Settlement
from ulak.spine.query import PARAMETER, Queries, Query
from ulak.spine.store import S, Tx
from ulak.stores.postgres.arrays import packers
from ulak.stores.postgres.credits import Credits
from ulak.stores.postgres.finish import finish_plain
from ulak.stores.postgres.floors import NO_TIMER, TIMERS, Floors, Level

sql = Queries(__package__)
spine_sql = Queries("ulak.spine")

_Held = tuple[set[str], bool, dict[Level, int]]


class Contended(Exception):
    """Somebody holds a key that this transaction may not wait for; it runs again and takes these keys first."""

    def __init__(self, keys: set[str]) -> None:
        super().__init__(f"{len(keys)} keys are contended")
        self.keys = keys


class Effect(NamedTuple):
    writes: bool
    locks: bool


@cache
def _effect(statement: str) -> Effect:
    writes = not statement.startswith(("SELECT", "WITH RECURSIVE"))
    return Effect(writes, writes or "FOR UPDATE" in statement)


@cache
def _columns(query: Query) -> tuple[str, ...]:
    """Return the names of a row's values: by SQLite's text, where each stands once, or by ours where there is none."""
    names = tuple(PARAMETER.findall(query.sqlite))
    return names if set(names) == set(query.postgres_parameters) else query.postgres_parameters


def _by_column(query: Query, rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    return dict(zip(_columns(query), zip(*rows, strict=True), strict=True))


def _packed(statement: str, parameters: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    arrays = {name: pack(parameters[name]) for name, pack in packers(statement).items()}
    return statement.encode(), parameters | arrays


def _insertion(rows: Sequence[Row]) -> tuple[Query, dict[str, Any]]:
    """Return the statement for these rows: columns that all of them share are bound once."""
    common = rows[0].common
    if not all(row.is_usual and row.common == common for row in rows):
        return sql.insert_jobs, _by_column(sql.insert_jobs, rows)
    kind, prio, slots, state = common
    return sql.insert_alike, {
        "kind": kind,
        "prio": prio,
        "slots": slots,
        "state": state,
        "id": [row.id for row in rows],
        "key": [row.key for row in rows],
        "slot": [row.slot for row in rows],
        "due_at": [row.due_at for row in rows],
        "payload": [row.payload for row in rows],
    }


@cache
def _joined(first: Query, last: Query) -> str:
    return f"WITH first AS ({first.postgres}) {last.postgres}"


class PostgresTx(Tx):
    def __init__(
        self, cursor: Cursor[Any], now: int, ids: Ids, capacity: Credits, floors: Floors, *, admits: bool = False
    ) -> None:
        super().__init__(now, ids, capacity)
        self._admits = admits
        self._cursor = cursor
        self._credits = capacity
        self._floors = floors
        self._keys: set[str] = set()
        self._holds = False
        self._admitted: set[str] = set()
        self._saved: _Held = (set(), False, {})
        self.begun = False
        self.changed = False
        self.unsent: tuple[Query, dict[str, Any]] | None = None
        self.taken: dict[Level, int] = {}
        self.lent: Counter[str] = Counter()
        self._parked: dict[str, int] = {}  # by key, without this transaction's changes

    @property
    def multi_process(self) -> bool:
        return True

    def rows(self, query: Query, **parameters: Any) -> list[tuple[Any, ...]]:
        self._execute(query, parameters)
        return self._cursor.fetchall()

    def rows_as(self, query: Query, shape: type[S], /, **parameters: Any) -> list[S]:
        return [shape(*row) for row in self.rows(query, **parameters)]

    def execute(self, query: Query, **parameters: Any) -> int:
        self._execute(query, parameters)
        return self._cursor.rowcount

    def insert_rows(self, query: Query, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        self._execute(query, _by_column(query, rows))
        return self._cursor.fetchall() if self._cursor.description else []

    def insert(self, rows: Sequence[Row]) -> None:
        """The first statement is not sent yet: if it stays the only one, it goes together with the commit's own."""
        insertion = _insertion(rows)
        if self.begun or self.unsent is not None:
            self._execute(*insertion)
        else:
            self.unsent = insertion
            self._holds = self.changed = True

    def update_rows(self, query: Query, rows: Sequence[tuple[Any, ...]]) -> int:
        """The rows go sorted by id: such statements look up each id's place, and locks are taken in one order."""
        if not rows:
            return 0
        self.insert_rows(query, sorted(rows, key=itemgetter(_columns(query).index("id"))))
        return self._cursor.rowcount

    def run_with_unsent(self, last: Query, parameters: dict[str, Any]) -> None:
        """The unsent insert and the last statement as one, which is a transaction by itself."""
        assert self.unsent is not None
        first, values = self.unsent
        self._cursor.execute(*_packed(_joined(first, last), values | parameters), prepare=True)
        self.unsent = None

    def _execute(self, query: Query, parameters: dict[str, Any]) -> None:
        if self.unsent is not None:
            insertion, values = self.unsent
            self._send(*_packed(insertion.postgres, values))
            self.unsent = None
        self._send(*_packed(query.postgres, parameters))
        effect = _effect(query.postgres)
        self._holds |= effect.locks
        self.changed |= effect.writes and self._cursor.rowcount > 0

    def _send(self, statement: bytes, parameters: dict[str, Any]) -> None:
        """The first statement takes BEGIN along: a round trip less, and a wait less for the interpreter's lock."""
        if self.begun:
            self._cursor.execute(statement, parameters, prepare=True)
            return
        self.begun = True
        with self._cursor.connection.pipeline():
            self._cursor.connection.execute(b"BEGIN")
            self._cursor.execute(statement, parameters, prepare=True)

    def begin(self) -> None:
        if not self.begun:
            self.begun = True
            self._cursor.execute(b"BEGIN")

    def save(self) -> None:
        """Remember at a savepoint which locks and claims are held."""
        self._saved = (set(self._keys), self._holds, dict(self.taken))

    def restore(self) -> None:
        """Forget after ROLLBACK TO the locks and claims since the savepoint: it has given them back."""
        self._keys, self._holds, self.taken = self._saved

    # Keys

    def lock_keys(self, keys: Sequence[str]) -> None:
        """Wait for keys only while nothing else is held: two transactions then never wait for one another."""
        new = set(keys) - self._keys
        if not new:
            return
        if not (self._keys or self._holds):
            self.rows(sql.lock_keys, keys=sorted(new))
        elif not self.rows(sql.try_keys, keys=sorted(new))[0][0]:
            raise Contended(self._keys | new)
        self._keys |= new

    # Claims

    def claim(self, owner: int, kind: str, prio: int, limit: int) -> list[Lease]:
        floor = self._lowered((kind, prio), self._floors.begin((kind, prio)))
        leases = sorted(
            self.rows_as(
                spine_sql.claim_jobs, Lease, owner=owner, kind=kind, prio=prio, n=limit, now=self.now, floor=floor
            ),
            key=attrgetter("turn"),
        )
        if leases:
            self.taken[(kind, prio)] = max(leases[-1].turn, self.taken.get((kind, prio), 0))
        return leases

    def ready_levels(self, levels: Sequence[Level]) -> set[Level]:
        kinds, prios = zip(*levels, strict=True)
        floors = [self._lowered(level, self._floors.of(level)) for level in levels]
        return set(self.rows(sql.find_levels, kinds=kinds, prios=prios, floors=floors))

    def _lowered(self, level: Level, floor: int) -> int:
        """Lower a floor: jobs that this transaction itself has made ready may lie below it."""
        lowest = self.after_commit.lowest.get(level)
        return floor if lowest is None else min(floor, max(lowest - 1, 0))

    def note_ready(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self.wake(row.kind, row.prio, row.id)

    def finish(self, ended: Sequence[Settlement]) -> set[tuple[int, int]]:
        return finish_plain(self, ended)

    # Timers

    def due_floor(self) -> int:
        # As with a claim: jobs that this transaction itself has deferred may lie below the floor.
        own = self.after_commit.due_at
        floor = self._floors.begin(TIMERS)
        floor = floor if own is None else min(floor, own - 1)
        return floor if floor > 0 else -NO_TIMER  # unknown: a time before 1970 is one, too

    def note_next_due(self, due_at: int | None) -> None:
        self.taken[TIMERS] = NO_TIMER if due_at is None else due_at - 1

    # Capacity

    def has_free(self, pool: str, number: int) -> bool:
        self._admitted.add(pool)
        return self._has_free(pool, number)

    def free_of(self, pool: str) -> int:
        """Here and in the database. Credit that other processes hold is not counted: at most a few blocks each."""
        free = self._credits.free_elsewhere(pool)
        if free is None:
            bound = self._credits.bound(pool)
            rows = self.rows(sql.read_free, pool=pool, bound=bound)
            free = int(rows[0][0]) if rows else bound
            self._credits.note_elsewhere(pool, free)
        return free + self.at_hand(pool)

    def parked_of(self, keys: Sequence[str], enough: int) -> dict[str, int]:
        self._parked |= self._credits.lines.known([key for key in keys if key not in self._parked])
        unknown = sorted(set(keys) - set(self._parked))
        if unknown:
            rows = self.rows(spine_sql.count_parked, keys=unknown, enough=max(enough, 0))
            # This transaction's own changes are in the count, and are noted again when it has committed.
            counts = {key: int(number) - self.after_commit.parked[key] for key, number in rows}
            self._credits.lines.note(counts)
            self._parked |= counts
        return {key: self._parked[key] + self.after_commit.parked[key] for key in keys}

    def lend(self, wanted: Counter[str]) -> str | None:
        """Set capacity aside for a caller's transaction, in memory only; return the pool that has too little."""
        for pool, number in sorted(wanted.items()):
            if not self._has_free(pool, number):
                return pool
        self.lent += wanted
        return None

    def _has_free(self, pool: str, number: int) -> bool:
        """Credit in memory is spent by one session only; a unit that another runs leases its own."""
        short = number - self.at_hand(pool)
        if short > 0 and not self._borrow(pool, short):
            return False
        self._credits.note_admitted(pool)
        return True

    def at_hand(self, pool: str) -> int:
        """Return how much this transaction may still spend or give back: neither spent nor lent."""
        held = self._credits.held(pool) if self._admits else 0
        return held + self.after_commit.free[pool] - self.lent[pool]

    def _borrow(self, pool: str, short: int) -> bool:
        if not self._credits.may_ask(pool, short):
            return False
        if self.take_credit(pool, max(short, self._credits.block(pool))) >= short:
            return True
        self._give_up(pool)
        return False

    def _give_up(self, pool: str) -> None:
        """Give back credit that does not suffice: two that each keep some and want more would wait for ever."""
        useless = max(self.at_hand(pool), 0)
        if useless:
            self.give_credit(pool, useless)
        self._credits.note_left(pool, useless)

    def take_credit(self, pool: str, wanted: int) -> int:
        """Lease capacity from the database; it is ours when this transaction commits."""
        ((granted,),) = self.rows(sql.take_credit, pool=pool, bound=self._credits.bound(pool), wanted=wanted)
        self.after_commit.free[pool] += granted
        self._credits.note_taken(pool, int(granted))
        return int(granted)

    def give_credit(self, pool: str, number: int) -> None:
        if self.execute(sql.give_credit, pool=pool, number=number):
            self.after_commit.free[pool] -= number
            self._credits.note_given(pool)
            self._credits.note_taken(pool, -number)

    def balance(self) -> None:
        """Take the next block of credit or give the surplus back before the commit; that saves a transaction."""
        for pool, change in sorted(self.after_commit.free.items()):
            admits = self._admits and pool in self._admitted
            wish = self._credits.wish(pool, change - self.lent[pool], admits=admits)
            if wish > 0 and self.take_credit(pool, wish) == 0:
                self._credits.note_left(pool, 0)
            elif wish < 0:
                self.give_credit(pool, -wish)
