"""The actions room: a handler for every channel type, the service over them, and what watches over both."""

from __future__ import annotations

from functools import partial
from typing import Any

from ulak.actions.brakes import Brakes, brakes_of
from ulak.actions.caretaker import Caretaker
from ulak.actions.decide import Limits
from ulak.actions.directory.verification import KIND as VERIFY_KIND
from ulak.actions.directory.verification import CodeSender, prune_codes
from ulak.actions.jobs import RunnerOptions, StepBackoff, StepRunner
from ulak.actions.model import CHANNEL_TYPES, ROOM, kind_of
from ulak.actions.plans.book import PlanBook
from ulak.actions.plans.render import Renderer
from ulak.actions.prune import prune_runs, prune_sent
from ulak.actions.service import Actions
from ulak.actions.steps.cases import Cases
from ulak.actions.steps.delivery import Delivery
from ulak.actions.steps.digest import Digests
from ulak.actions.steps.ends import RECEIPT_KIND, StepEnds
from ulak.actions.steps.fresh import FreshCases
from ulak.actions.steps.starts import Starter
from ulak.actions.unreadable import prune_unreadable
from ulak.actions.wire.events import REQUESTED_TOPIC
from ulak.channels.destination import Destinations
from ulak.settings.actions import Actions as ActionsSection
from ulak.spine.breaker import BreakerPolicy
from ulak.spine.handler import Handler
from ulak.spine.room import Host, Room

TABLES = ("recipient_profiles", "recipient_channels", "action_plans", "action_plan_steps", "action_routes")
MAX_ATTEMPTS = 1000  # the handler decides by the step's own retries
TIMEOUT_SECONDS = 150.0  # longer than any step's own limit, so that the step itself says that it was late
VERIFY_ATTEMPTS = 4


def actions_room(host: Host) -> Room[Actions]:
    section = host.settings.actions
    book, fresh = PlanBook(), FreshCases()
    starter = Starter(Destinations(host.settings), fresh)
    ends = StepEnds(book, starter, section.downlink_topic)
    renderer = Renderer.of(host.settings)
    service = Actions(host, section, book, ends, renderer, starter, fresh)
    runner, sender = _runner(host, section, book, ends, renderer, starter, fresh, service)
    caretaker = Caretaker(host, ends)

    async def start() -> None:
        await service.start()
        await caretaker.start()

    async def close() -> None:
        await service.close()
        await caretaker.close()

    return Room(
        ROOM,
        service,
        handlers=(
            *(_handler(section, name, runner) for name in CHANNEL_TYPES),
            Handler(RECEIPT_KIND, runner.receipt_due, capacity=section.capacity),
            Handler(VERIFY_KIND, sender.run, max_attempts=VERIFY_ATTEMPTS, backoff=StepBackoff()),
        ),
        ports={"requests": lambda: (REQUESTED_TOPIC, service.accept_batch, service.keep_unreadable)},
        prunes={
            "actions_run": partial(prune_runs, keep_millis=section.idempotency_millis),
            "actions_sent": prune_sent,
            "actions_code": prune_codes,
            "actions_unreadable": partial(prune_unreadable, keep_millis=section.idempotency_millis),
        },
        gauges=caretaker.gauges,
        start=start,
        close=close,
        tables=TABLES,
    )


def _runner(
    host: Host,
    section: ActionsSection,
    book: PlanBook,
    ends: StepEnds,
    renderer: Renderer,
    starter: Starter,
    fresh: FreshCases,
    service: Actions,
) -> tuple[StepRunner, CodeSender]:
    limits = {name: _limits(getattr(section, name)) for name in CHANNEL_TYPES}
    cases, delivery = Cases(lambda: host.store, book), Delivery(lambda: host.channels, lambda: host.store)
    link = service.link
    options = RunnerOptions(
        limits,
        starter.line_of,
        section.quiet_hours or None,
        section.time_zone,
        acknowledge_url=link,
    )
    brakes = Brakes(lambda: host.store, brakes_of(section))
    digests = Digests(lambda: host.store, cases, ends, renderer, delivery, brakes, limits.__getitem__, link, host.clock)
    runner = StepRunner(options, cases, ends, renderer, delivery, brakes, digests, fresh, host.clock)
    return runner, CodeSender(lambda: host.store, delivery, limits)


def _limits(section: Any) -> Limits:
    return Limits(section.timeout_seconds, section.retries)


def _handler(section: ActionsSection, name: str, runner: StepRunner) -> Handler:
    return Handler(
        kind_of(name),
        runner.run,
        concurrency=getattr(section, name).consumers,
        max_attempts=MAX_ATTEMPTS,
        timeout_seconds=TIMEOUT_SECONDS,
        backoff=StepBackoff(),
        capacity=section.capacity,
        breaker=BreakerPolicy(),
    )
