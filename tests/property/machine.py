"""The machine: random verbs on the real spine and on the model, and what must be true after each of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from tests.property.driver import Driver, Snapshot, Stored, active, live
from tests.property.model import Ended, Model, Piece, Said, replay
from ulak import codec
from ulak.errors import NotFound
from ulak.spine.capacity import live_pool
from ulak.spine.job import BEHIND, DEFERRED, LEASED, PARKED, READY, SUSPECT, Lease, Row
from ulak.spine.outcome import Cancel, Dead, Done, Outcome, Release, Retry, Settlement, Snooze
from ulak.spine.units import dead_letters
from ulak.spine.units.cancel import CANCEL
from ulak.spine.units.claim import CLAIM_SUSPECTS, Claimed, Demand, SuspectDemand, Want
from ulak.spine.units.cron import FIRE_DUE, CronEntry, Tick
from ulak.spine.units.enqueue import ENQUEUE, Full
from ulak.spine.units.prune import PRUNE, Ages
from ulak.spine.units.rescue import RESCUE, Lost
from ulak.spine.units.settle import SETTLE
from ulak.spine.units.slots import PROMOTE_STRANDED
from ulak.spine.units.timers import LOOK_AHEAD, PROMOTE_DUE, budget_of

KINDS = ("mail", "sms", "call")
SLOTS = {"one": 1, "pair": 2, "three": 3}  # by key
RATED = "call"
RATE = 2.0  # with steps of the clock that are multiples of 250 ms, tokens are exact in binary
OWNERS = (1, 2)
HOUR = 3_600_000


class Form(NamedTuple):
    """A job to add, in words that do not depend on the clock or the example."""

    kind: str
    key: str | None
    prio: int
    delay: int
    lasts: int | None
    unique_key: str | None
    continues: bool
    hold: bool


Draw = Callable[[Random], Any]


def one_of(*values: Any) -> Draw:
    return lambda chance: chance.choice(values)


def mostly(usual: Any, *others: Any) -> Draw:
    return one_of(*[usual] * (2 * len(others)), *others)


def some(draw: Draw, most: int) -> Draw:
    return lambda chance: [draw(chance) for _ in range(chance.randint(1, most))]


def draw_form(chance: Random) -> Form:
    return Form(
        kind=chance.choice(KINDS),
        key=chance.choice([None, "one", "one", "pair", "three"]),
        prio=chance.randint(0, 3),
        delay=chance.choice([0, 0, 0, 20, 250, 1000, 60_000]),
        lasts=mostly(None, None, None, -1, 10, 500, 5000)(chance),
        unique_key=mostly(None, "u")(chance),
        continues=mostly(False, True)(chance),
        hold=mostly(False, False, True)(chance),
    )


outcome = one_of(
    Done(), Done({"sent": [1, "é"]}), Cancel("enough"), Dead("no such address"), Dead("gave up", "transient"),
    Retry(reason="busy"), Retry(reason="slow"), Snooze(1.0, "later"), Snooze(1.0, "open", holds=True), Release(),
)  # fmt: skip
number = one_of(*range(1000))
owner = one_of(*OWNERS)

# What may be done next, with its weight and its options.
STEPS: list[tuple[str, int, dict[str, Draw]]] = [
    ("add", 4, {"added": some(draw_form, 4), "together": one_of(True, False)}),
    ("claim", 6, {
        "number": number, "owner": owner, "free": one_of(*range(1, 7)),
        "levels": mostly((0, 1, 2, 3), (0,), (1, 3), (2, 3)),
    }),
    ("add_and_claim", 3, {"added": some(draw_form, 4), "owner": owner, "free": one_of(*range(1, 7))}),
    ("claim_suspects", 5, {"owner": owner, "number": one_of(1, 2, 3)}),
    ("settle", 7, {
        "picks": some(number, 4), "said": some(outcome, 3), "pause": one_of(0, 0, 20, 250, 5000),
        "stale": mostly(None, 0, 7, 100),
    }),
    ("settle_what_was_leased_once", 1, {"number": number, "outcome": outcome}),
    ("rescue", 3, {"owner": owner, "deaths": one_of(2, 5, 5, 5)}),
    ("wait", 3, {"seconds": one_of(0, 0.25, 1, 5, 60, 600), "look": mostly(True, False)}),
    ("look_ahead", 3, {}),
    ("wait_and_ride", 3, {
        "seconds": one_of(0.25, 5, 60, 600), "number": number, "owner": owner, "free": one_of(*range(1, 7)),
    }),
    ("fire_cron", 1, {}),
    ("promote_stranded", 1, {}),
    ("prune", 1, {"history": one_of(0, HOUR), "dead": one_of(600_000, 30 * HOUR)}),
    ("cancel", 1, {"number": number}),
    ("redrive", 2, {"picks": some(number, 4)}),
    ("edit_dead", 1, {"number": number, "payload": one_of(None, {"to": "ada"})}),
    ("drop_dead", 1, {"number": number}),
]  # fmt: skip


def step_of(seed: int) -> tuple[str, dict[str, Any]]:
    """A step from a seed: evenly spread, where rules and strategies of their own would repeat the simplest ones."""
    chance = Random(seed)
    name, _, options = chance.choices(STEPS, [weight for _, weight, _ in STEPS])[0]
    return name, {option: draw(chance) for option, draw in options.items()}


class SpineMachine(RuleBasedStateMachine):
    def __init__(self, driver: Driver) -> None:
        super().__init__()
        self.driver = driver
        self.tag = driver.begin()
        self.model = Model(active, live)
        self.leases: list[Lease] = []
        self.cursor = driver.last_seq()
        self.told: list[list[Said]] = []  # by step, what the log has to say
        self.replayed: dict[int, str] = {}
        self.rated_since: int | None = None
        self.rated = 0
        self.cron = CronEntry(f"cron{self.tag}", "*/5 * * * *", f"tick{self.tag}", {"a": 1})
        self.cron_fired_at: int | None = None
        self.last_turn = 0

    @property
    def now(self) -> int:
        return self.driver.clock.now()

    def of(self, name: str) -> str:
        return f"{name}{self.tag}"

    def row(self, form: Form) -> Row:
        now = self.now
        return Row(
            self.driver.store.ids.take(now), self.of(form.kind), form.key, SLOTS.get(form.key or "", 1), None,
            form.prio, now + form.delay, READY, now, None if form.lasts is None else now + form.lasts,
            form.unique_key, self.of("after") if form.continues else None, int(form.hold), codec.encode(form._asdict()),
        )  # fmt: skip

    @rule(step=st.integers(0, 1 << 32).map(step_of))
    def act(self, step: tuple[str, dict[str, Any]]) -> None:
        name, options = step
        getattr(self, name)(**options)

    # Accepting

    def add(self, added: list[Form], together: bool) -> None:
        """All or none for one caller, or each for a caller of its own, at the same time."""
        rows = [self.row(form) for form in added]
        batches = [rows] if together else [[row] for row in rows]
        for verdict, batch in zip(self.driver.submit_at_once(ENQUEUE, batches), batches, strict=True):
            self.same_verdict(verdict, self.model.enqueue(batch, self.now))

    def same_verdict(
        self, verdict: list[int] | Full, expected: list[int] | set[tuple[str, bool, str | None, int]]
    ) -> None:
        if isinstance(verdict, Full):
            assert isinstance(expected, set), f"refused at {verdict}, but there is capacity"
            assert (verdict.kind, verdict.live, verdict.key, verdict.number) in expected
        else:
            assert verdict == expected

    # Running

    def claim(self, number: int, owner: int, free: int, levels: tuple[int, ...]) -> None:
        ready = self.model.among(READY)
        if not ready:
            self.wait(1, look=True)
            return
        kind = ready[number % len(ready)].kind
        claimed = self.driver.submit(self.driver.claimer.verb, self.demand(kind, owner, free, levels))
        self.same_claim(claimed, kind, owner, free, levels)

    def add_and_claim(self, added: list[Form], owner: int, free: int) -> None:
        """A claim that comes with new jobs, which it may start as they are accepted."""
        batches = [[self.row(form)] for form in added]
        kind, levels = batches[0][0].kind, (0, 1, 2, 3)
        demand = self.demand(kind, owner, free, levels)
        *verdicts, claimed = self.driver.submit_in_turn(
            [*((ENQUEUE, batch) for batch in batches), (self.driver.claimer.verb, demand)]
        )
        for verdict, batch in zip(verdicts, batches, strict=True):
            self.same_verdict(verdict, self.model.enqueue(batch, self.now))
        self.same_claim(claimed, kind, owner, free, levels)

    def demand(self, kind: str, owner: int, free: int, levels: tuple[int, ...]) -> Demand:
        want = Want(kind, free, levels, RATE if kind == self.of(RATED) else None)
        return Demand(owner, (want,), free, {"async": free})

    def same_claim(self, claimed: Claimed, kind: str, owner: int, free: int, levels: tuple[int, ...]) -> None:
        rated = kind == self.of(RATED)
        wanted = self.model.spend(kind, RATE, free, self.now) if rated else free
        expected, taken = self.model.claim(owner, kind, wanted, levels, self.now)
        self.same_leases(claimed.leases, expected)
        assert claimed.expired == taken - len(expected)
        if rated:
            self.model.buckets[kind].tokens += wanted - taken
            self.check_rate(taken)

    def claim_for(self, owner: int) -> None:
        """What a step does that needs work under way and finds none."""
        self.claim(0, owner, 3, (0, 1, 2, 3))

    def check_rate(self, taken: int) -> None:
        self.rated_since = self.now if self.rated_since is None else self.rated_since
        self.rated += taken
        assert self.rated <= RATE + RATE * (self.now - self.rated_since) / 1000

    def claim_suspects(self, owner: int, number: int) -> None:
        """Those of a first death if there are any, else one that must be alone."""
        if not self.model.among(SUSPECT):
            self.claim_for(owner)
            return
        alone = all(piece.crashes > 1 for piece in self.model.among(SUSPECT))
        kinds = tuple(map(self.of, KINDS))
        expected = self.model.claim_suspects(owner, kinds, number, self.now, alone=alone)
        leases = self.driver.submit(CLAIM_SUSPECTS, SuspectDemand(owner, kinds, number, alone))
        self.same_leases(leases, expected)

    def same_leases(self, leases: Sequence[Lease], expected: Sequence[int]) -> None:
        assert [lease.id for lease in leases] == list(expected)
        for lease in leases:
            piece = self.model.live[lease.id]
            assert lease.expires_at is None or lease.expires_at > self.now, "expired work must not run"
            assert (lease.epoch, lease.attempt, lease.crashes) == (piece.epoch, piece.attempt, piece.crashes)
            assert (lease.kind, lease.key, lease.prio) == (piece.kind, piece.key, piece.prio)
            assert codec.decode(lease.payload) == codec.decode(piece.payload)
        self.leases += leases

    # Ending attempts

    def held(self) -> list[Lease]:
        now = self.model.live
        return [
            one
            for one in self.leases
            if one.id in now and (now[one.id].state, now[one.id].epoch) == (LEASED, one.epoch)
        ]

    def settle(self, picks: list[int], said: list[Outcome], pause: int, stale: int | None) -> None:
        """What is leased now, and sometimes what was leased once; the same may be named twice, by two callers."""
        held = self.held()
        if not held:
            self.claim_for(OWNERS[0])
            return
        chosen = [held[number % len(held)] for number in picks]
        if stale is not None:
            chosen.insert(stale % len(chosen), self.leases[stale % len(self.leases)])
        self.settle_leases(chosen, said, pause)

    def settle_what_was_leased_once(self, number: int, outcome: Outcome) -> None:
        if self.leases:
            self.settle_leases([self.leases[number % len(self.leases)]], [outcome], 0)

    def settle_leases(self, leases: list[Lease], said: list[Outcome], pause: int) -> None:
        """Who settles one attempt twice says the same both times: which of two words is kept is nobody's promise."""
        order = {(one.id, one.epoch): number for number, one in enumerate(dict.fromkeys(leases))}
        settlements = [
            Settlement(
                one.id, one.epoch, one.kind, one.key, one.attempt, said[order[one.id, one.epoch] % len(said)],
                self.now + pause,
            )
            for one in leases
        ]  # fmt: skip
        batches = [batch for batch in (settlements[::2], settlements[1::2]) if batch]
        expected = self.model.settle(settlements, self.now)
        told = self.driver.submit_at_once(SETTLE, batches)
        assert set[tuple[int, int]]().union(*told) == expected, "only what is still leased under its epoch is kept"

    def rescue(self, owner: int, deaths: int) -> None:
        if not self.held():
            self.claim_for(owner)
        expected = self.model.rescue(owner, deaths, self.now)
        assert self.driver.submit(RESCUE, Lost(owner, deaths)).total() == expected

    # Time

    def wait(self, seconds: float, look: bool) -> None:
        self.driver.clock.advance(seconds)
        if look and self.model.among(DEFERRED):
            expected = self.model.promote_due(self.now)
            assert self.driver.submit(PROMOTE_DUE, None) == expected

    def look_ahead(self) -> None:
        """A worker with capacity for all takes what is due soon, except where a rate or a key has a say."""
        demands = [self.demand(self.of(kind), OWNERS[0], 1000, ()) for kind in KINDS]
        wants = tuple(want for one in demands for want in one.wants)
        deferred = self.model.among(DEFERRED)
        expected = self.model.promote_due(self.now, [want.kind for want in wants if want.rate_per_second is None])
        look = self.driver.submit(LOOK_AHEAD, budget_of(replace(demands[0], wants=wants), ()))
        assert look.again_at == expected
        ahead = [piece for piece in deferred if piece.state == READY and piece.due_at > self.now]
        assert look.soon == [
            (one.id, one.due_at, one.kind) for one in sorted(ahead, key=lambda one: (one.due_at, one.id))
        ]

    def wait_and_ride(self, seconds: float, number: int, owner: int, free: int) -> None:
        """A claim that waits for work takes it at the levels where the next commit makes some ready."""
        self.driver.clock.advance(seconds)
        deferred = self.model.among(DEFERRED)
        if not deferred:
            return
        kind = deferred[number % len(deferred)].kind
        piggyback = self.driver.store.piggyback(self.driver.claimer.piggyback, self.demand(kind, owner, free, ()))
        before = {piece.id for piece in self.model.among(READY)}
        expected = self.model.promote_due(self.now)
        assert self.driver.submit(PROMOTE_DUE, None) == expected
        self.driver.store.withdraw_piggyback()
        claimed = self.driver.run(piggyback)
        fresh = [piece for piece in self.model.among(READY) if piece.kind == kind and piece.id not in before]
        if fresh:
            assert claimed is not None
            self.same_claim(claimed, kind, owner, free, tuple(sorted({piece.prio for piece in fresh})))
        else:
            assert claimed is None or not claimed.leases

    def promote_stranded(self) -> None:
        """There is nothing for it to do: a slot is handed on in the commit that frees it."""
        self.driver.submit(PROMOTE_STRANDED, "")

    def fire_cron(self) -> None:
        """Two instances look at the same time; one fires."""
        known = self.now if self.cron_fired_at is None else self.cron_fired_at
        due_at = known - known % 300_000 + 300_000
        self.cron_fired_at = known
        answers = self.driver.submit_at_once(FIRE_DUE, [Tick((self.cron,)), Tick((self.cron,))])
        fired = [name for _, names in answers for name in names]
        assert fired == ([self.cron.name] if due_at <= self.now else [])
        assert all(following > self.now for following, _ in answers)
        if fired:
            self.cron_fired_at = self.now
            self.model.said.append(("cron.fired", 0, self.cron.kind))
            self.model.owed.append(
                (self.cron.kind, 2, {"entry": self.cron.name, "due_at": due_at, "payload": {"a": 1}})
            )

    def prune(self, history: int, dead: int) -> None:
        self.follow()
        expected = self.model.prune(self.now, history, dead)
        removed = self.driver.submit(PRUNE, Ages(history, 0, dead))
        assert (removed["past"], removed["dead"]) == expected

    # People

    def cancel(self, number: int) -> None:
        known = [*self.model.live, *self.model.past, *self.model.dead, 1]
        identifier = known[number % len(known)]
        expected = self.model.cancel(identifier, self.now)
        assert self.driver.submit(CANCEL, identifier) == expected

    def redrive(self, picks: list[int]) -> None:
        known = [*self.model.dead, *self.model.live, 1]
        ids = [known[number % len(known)] for number in picks]
        expected = self.model.redrive(ids, self.now)
        assert self.driver.write(dead_letters.redrive, ids) == expected

    def edit_dead(self, number: int, payload: Any) -> None:
        if not self.model.dead:
            return
        letter = [*self.model.dead.values()][number % len(self.model.dead)]
        letter.piece.payload = codec.encode(payload)
        self.driver.write(dead_letters.edit, letter.piece.id, letter.piece.payload)

    def drop_dead(self, number: int) -> None:
        if not self.model.dead:
            return
        identifier = [*self.model.dead][number % len(self.model.dead)]
        del self.model.dead[identifier]
        self.driver.write(dead_letters.drop, identifier)
        try:
            self.driver.write(dead_letters.drop, identifier)
        except NotFound:
            return
        raise AssertionError("dropped twice")

    # What is always true

    @invariant()
    def store_and_model_agree(self) -> None:
        snapshot = self.driver.snapshot(self.tag)
        self.adopt(snapshot.live)
        self.follow_turns(snapshot.live)
        assert [as_stored(piece) for piece in by_id(self.model.live)] == [without_slot(row) for row in snapshot.live]
        assert snapshot.past == [as_past(one.piece, one) for one in by_id(self.model.past)]
        assert snapshot.dead == [as_dead(one.piece, one) for one in by_id(self.model.dead)]
        self.check_alone(snapshot)
        self.told.append(self.model.said)
        self.model.said = []

    def adopt(self, live: list[Stored]) -> None:
        """What the store enqueued by itself must be owed, each exactly once."""
        made = [row for row in live if row.id not in self.model.live]
        found = sorted((row.kind, row.prio, codec.encode(codec.decode(row.payload))) for row in made)
        owed = sorted((kind, prio, codec.encode(message)) for kind, prio, message in self.model.owed)
        assert [(kind, prio, codec.decode(body)) for kind, prio, body in found] == [
            (kind, prio, codec.decode(body)) for kind, prio, body in owed
        ]
        self.model.owed.clear()
        for row in made:
            piece = Piece(row.id, row.kind, None, 1, row.prio, self.now, None, None, None, False, row.payload, row.id)
            self.model.accept(piece, self.now)

    def follow_turns(self, live: list[Stored]) -> None:
        """Who became ready or joined a line stands behind all others, in the order in which the model let them."""
        turned = [row for row in live if row.id in self.model.turned]
        assert min((row.turn for row in turned), default=self.last_turn + 1) > self.last_turn
        by_turn = {key: [row.id for row in sorted(turned, key=lambda row: row.turn) if row.key == key] for key in SLOTS}
        for key, ids in by_turn.items():
            assert ids == sorted(ids, key=lambda one: self.model.live[one].turn), f"{key} was not served in turn"
        for row in turned:
            self.model.live[row.id].turn = row.turn
        self.model.turned.clear()
        self.last_turn = max([self.last_turn, *(row.turn for row in live)])

    def check_alone(self, snapshot: Snapshot) -> None:
        """What the store's rows must fulfil whatever the model says."""
        check_places(snapshot)
        check_keys(snapshot.live)
        uniques = Counter((row.kind, row.unique_key) for row in snapshot.live if row.unique_key is not None)
        assert max(uniques.values(), default=1) == 1
        self.check_tally(snapshot)
        for kind in map(self.of, (*KINDS, "after")):
            states = [row.state for row in snapshot.live if row.kind == kind]
            assert self.driver.free(kind) == active(kind) - sum(state not in PARKED for state in states)
            assert self.driver.free(live_pool(kind)) == live(kind) - len(states)
        parked = Counter(row.key for row in snapshot.live if row.key is not None and row.state in PARKED)
        if not self.driver.store.multi_process:
            assert self.driver.store.capacity.parked == parked

    def check_tally(self, snapshot: Snapshot) -> None:
        tally = Counter(snapshot.tally)
        assert tally == Counter({name: number for name, number in self.model.counts.items() if number})
        live = Counter(row.kind for row in snapshot.live)
        for kind in {kind for _, kind in tally}:
            ended = sum(tally[(word, kind)] for word in ("done", "cancelled", "expired", "dead"))
            assert tally[("accepted", kind)] == ended - tally[("redriven", kind)] + live[kind]

    def follow(self) -> None:
        """Read the log up to here: no gap, the words of each step, and the same states when it is replayed."""
        number = sum(map(len, self.told))
        events = self.driver.events(self.cursor, number)
        assert [one.seq for one in events] == list(range(self.cursor + 1, self.cursor + number + 1))
        said = [(str(one.name), one.job, one.kind) for one in events]
        start = 0
        for step in self.told:
            assert sorted(said[start : start + len(step)]) == sorted(step)
            start += len(step)
        self.replayed |= replay(said)
        self.cursor, self.told = self.cursor + number, []
        self.check_replay()

    def check_replay(self) -> None:
        for piece in self.model.live.values():
            assert self.replayed[piece.id] == ("running" if piece.state == LEASED else "waiting")
        for ended in (*self.model.past.values(), *self.model.dead.values()):
            assert self.replayed[ended.piece.id] == ended.word

    def teardown(self) -> None:
        if not self.model.said:  # otherwise a step has failed, and its events may never come
            self.follow()


def by_id(found: dict[int, Any]) -> list[Any]:
    return [found[identifier] for identifier in sorted(found)]


def without_slot(row: Stored) -> tuple[Any, ...]:
    """Which slot does not matter, only whether there is one; when it was cancelled neither."""
    return (*row._replace(slot=row.slot is not None, cancelled_at=row.cancelled_at is not None),)


def as_stored(piece: Piece) -> tuple[Any, ...]:
    return (
        piece.id, piece.kind, piece.key, piece.slots, piece.holds, piece.prio, piece.due_at, piece.state,
        piece.attempt, piece.crashes, piece.epoch, piece.owner, piece.expires_at, piece.cancelled, piece.unique_key,
        piece.continuation, int(piece.hold), piece.payload, piece.turn,
    )  # fmt: skip


def as_past(piece: Piece, ended: Ended) -> tuple[Any, ...]:
    return (piece.id, piece.kind, ended.word, piece.attempt, piece.crashes, ended.at, piece.payload)


def as_dead(piece: Piece, ended: Ended) -> tuple[Any, ...]:
    return (
        piece.id, piece.kind, ended.error_class, piece.attempt, piece.crashes, piece.epoch, ended.at, piece.payload,
    )  # fmt: skip


def check_places(snapshot: Snapshot) -> None:
    ids = [row[0] for rows in (snapshot.live, snapshot.past, snapshot.dead) for row in rows]
    assert len(ids) == len(set(ids)), "a job is in exactly one place"
    assert all((row.owner is not None) == (row.state == LEASED) for row in snapshot.live)


def check_keys(live: list[Stored]) -> None:
    by_key: defaultdict[str, list[Stored]] = defaultdict(list)
    for row in live:
        if row.key is not None:
            by_key[row.key].append(row)
    for key, rows in by_key.items():
        slots = [row.slot for row in rows if row.slot is not None]
        behind = [row for row in rows if row.state == BEHIND]
        assert len(slots) == len(set(slots)), f"a slot of {key} is held twice"
        assert set(slots) <= set(range(1, SLOTS[key] + 1)), f"more of {key} than its slots are out of line"
        assert not behind or len(slots) == SLOTS[key], f"{key} has jobs behind and a free slot"
        assert all(row.slot is None for row in behind)
        assert all(row.slot is not None for row in rows if row.state in (READY, LEASED))
