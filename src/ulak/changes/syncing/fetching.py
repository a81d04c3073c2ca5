"""The files of one sync: downloaded, taken from a person's hand, or the ones that were held back."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ulak.changes.model import LastList
from ulak.changes.registry import RegistryEntry
from ulak.changes.sources.source import Unfit
from ulak.changes.syncing import download
from ulak.changes.syncing.download import Fetched
from ulak.changes.syncing.workshop import Workshop


@dataclass(frozen=True, slots=True)
class Order:
    """The order of a sync: files that a person named, or a list that was held back, up to a ceiling."""

    sync: int
    registry: str
    inbox: str | None = None
    approves: int | None = None
    ceiling: int | None = None
    digest: str | None = None


class ListFiles:
    """Fetched by role. A path of None: the server says that nothing changed."""

    def __init__(self, fetched: Mapping[str, Fetched]) -> None:
        self._fetched = fetched
        self.known = {role: one.known for role, one in fetched.items()}
        self.paths = {role: one.path for role, one in fetched.items() if one.path is not None}
        told = "".join(f"{role}:{one.digest};" for role, one in sorted(fetched.items()))
        self.digest = hashlib.sha256(told.encode()).hexdigest()

    def refuse_twins(self) -> None:
        if len(self._fetched) > 1 and len({one.digest for one in self._fetched.values()}) == 1:
            raise Unfit(f"{' and '.join(self._fetched)} are the same file")

    def sizes(self) -> dict[str, int]:
        return {role: path.stat().st_size for role, path in self.paths.items()}


class Fetcher:
    def __init__(self, entry: RegistryEntry, shop: Workshop, last: LastList, seconds: float) -> None:
        self._entry = entry
        self._roles = entry.source.roles
        self._shop = shop
        self._last = last
        self._seconds = seconds

    async def fetch(self, order: Order, folder: Path) -> ListFiles:
        if order.approves is not None:
            return await self._held(order, folder)
        if order.inbox is not None:
            return ListFiles({role: await asyncio.to_thread(self._take, order, folder, role) for role in self._roles})
        found = await self._get_all(folder)
        gets = found.values()
        if any(one.path is not None for one in gets):  # one that did not change is needed all the same
            for role in [role for role, one in found.items() if one.path is None]:
                found[role] = await self._get(role, folder, ask=False)
        return ListFiles(found)

    async def _get_all(self, folder: Path, *, ask: bool = True) -> dict[str, Fetched]:
        gets = await asyncio.gather(*(self._get(role, folder, ask=ask) for role in self._roles))
        return dict(zip(self._roles, gets, strict=True))

    async def _held(self, order: Order, folder: Path) -> ListFiles:
        """The very list that was held: from this machine, or again from its source when another machine has it."""
        known = await asyncio.to_thread(self._shop.held_files)
        here = ListFiles({role: Fetched(path, one["digest"], one) for role, (path, one) in known.items()})
        if here.digest == order.digest:
            return here
        again = ListFiles(await self._get_all(folder, ask=False))
        if again.digest != order.digest:
            raise Unfit(
                "the list that was held is on another machine, and its source has another one by now; sync again"
            )
        return again

    def _take(self, order: Order, folder: Path, role: str) -> Fetched:
        origin = self._shop.claimed_files(order.sync) / role
        if not origin.is_file():
            raise Unfit(f"{role}: the file is missing")
        found = download.take_copy(origin, folder / f"{role}.file")
        # The next download asks nobody whether this changed, and may be of any age.
        return replace(found, known={"digest": found.digest})

    async def _get(self, role: str, folder: Path, *, ask: bool = True) -> Fetched:
        known = self._last.files.get(role, {})
        last = known if ask and not self._last.withheld else {"modified": known.get("modified", "")}
        try:
            return await download.fetch(self._entry.urls[role], folder / f"{role}.file", self._seconds, last)
        except Unfit as error:
            raise Unfit(f"{role}: {error}") from error
