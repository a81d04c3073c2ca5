"""The verbs with which people steer kinds while they are served: list, pause, resume, set."""

from __future__ import annotations

from dataclasses import dataclass

from ulak.spine.handler import Handlers
from ulak.spine.jobs import Counts, Jobs
from ulak.spine.loops.loops import Loops
from ulak.spine.store import Store
from ulak.spine.units.controls import UNCHANGED, Control, Unchanged, control, load_controls


@dataclass(frozen=True, slots=True)
class KindState:
    """A kind that has a handler here, has jobs, or is steered. `concurrency` is the value in force in this process."""

    kind: str
    handled: bool
    served: bool
    paused: bool
    concurrency: int | None
    declared: int | None  # the handler's own number
    jobs: Counts | None  # that are not finished


class Kinds:
    """`ulak.kinds`: lists the job kinds, pauses and resumes them, and sets their concurrency."""

    def __init__(self, store: Store, handlers: Handlers, loops: Loops) -> None:
        self._store = store
        self._handlers = handlers
        self._loops = loops

    async def list(self) -> list[KindState]:
        """By name, as the store and this process see them."""
        counts = await Jobs(self._store, self._store.clock).counts()
        controls = await self._store.read(load_controls)
        names = {handler.kind for handler in self._handlers} | set(counts) | set(controls)
        return [self._state(name, controls.get(name, Control()), counts.get(name)) for name in sorted(names)]

    def _state(self, kind: str, control: Control, counts: Counts | None) -> KindState:
        handler = self._handlers.get(kind)
        declared = None if handler is None else handler.concurrency
        return KindState(
            kind,
            handler is not None,
            handler is not None and self._loops.steering.serves(kind),
            control.paused,
            declared if control.concurrency is None else control.concurrency,
            declared,
            counts,
        )

    async def set(
        self,
        kind: str,
        *,
        paused: bool | Unchanged = UNCHANGED,
        concurrency: int | Unchanged | None = UNCHANGED,
        who: str = "python",
    ) -> KindState:
        """Change the given values. They hold here on return, and in the store's other processes within two seconds."""
        await self._store.write(control, who, kind, paused=paused, concurrency=concurrency)
        await self._loops.controls_hold()
        return next(state for state in await self.list() if state.kind == kind)

    async def pause(self, kind: str, *, who: str = "python") -> KindState:
        """Jobs of the kind are accepted and wait; attempts that run end as usual."""
        return await self.set(kind, paused=True, who=who)

    async def resume(self, kind: str, *, who: str = "python") -> KindState:
        return await self.set(kind, paused=False, who=who)
