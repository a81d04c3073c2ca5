"""`ulak.actions.directory`: make, read, change and delete profiles, channels and routes; prove channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ulak.actions.audited import PYTHON, audited
from ulak.actions.directory import entries
from ulak.actions.directory.forms import ChannelForm, ProfileForm, RouteForm, parse_form
from ulak.actions.directory.verification import confirm, new_nonce, refusal, start_verification, trust
from ulak.actions.model import ActionRoute, RecipientChannel, RecipientProfile
from ulak.actions.wire.request import check_limit
from ulak.errors import Refused
from ulak.spine.room import Host
from ulak.spine.store import Tx
from ulak.spine.units.audit import record as record_audit

R = TypeVar("R")


class Directory:
    """The directory's verbs. The person who acts is given as `who`, for the audit chain."""

    def __init__(self, host: Host, secret: Callable[[], str], changed: Callable[[], None]) -> None:
        self._host = host
        self._secret = secret
        self._changed = changed

    async def _change(self, unit: Callable[..., R], verb: str, who: str, *given: Any) -> R:
        def run(tx: Tx, *given: Any) -> R:
            made = audited(unit, verb, who)(tx, *given)
            self._changed()
            return made

        return await self._host.store.write(run, *given)

    # Profiles

    async def create_profile(self, document: dict[str, Any], *, who: str = PYTHON) -> RecipientProfile:
        form = parse_form(document, ProfileForm, "the profile")
        return await self._change(entries.create_profile, "actions.profile.created", who, form)

    async def profile(self, identifier: int) -> RecipientProfile:
        return await self._host.store.read(entries.read_profile, identifier)

    async def profiles(self, *, after: int = 0, limit: int = 50) -> list[RecipientProfile]:
        return await self._host.store.read(entries.list_profiles, after, check_limit(limit))

    async def amend_profile(self, identifier: int, changes: Any, *, who: str = PYTHON) -> RecipientProfile:
        return await self._change(entries.amend_profile, "actions.profile.amended", who, identifier, changes)

    async def delete_profile(self, identifier: int, *, who: str = PYTHON) -> None:
        await self._change(entries.delete_profile, "actions.profile.deleted", who, identifier)

    async def forget(self, identifier: int, *, who: str = PYTHON) -> None:
        """Erase a person: profile, channels, and the variables of the runs that reached it."""
        await self._change(entries.forget_profile, "actions.profile.forgotten", who, identifier)

    async def unreachable(self, *, after: int = 0, limit: int = 50) -> list[tuple[int, str]]:
        """Profiles that plans lead to and that have no channel left."""
        return await self._host.store.read(entries.list_unreachable, after, check_limit(limit))

    # Channels

    async def create_channel(self, document: dict[str, Any], *, who: str = PYTHON) -> RecipientChannel:
        form = parse_form(document, ChannelForm, "the channel")
        return await self._change(entries.create_channel, "actions.channel.created", who, form)

    async def channel(self, identifier: int) -> RecipientChannel:
        return await self._host.store.read(entries.read_channel, identifier)

    async def channels(
        self, *, profile_id: int | None = None, after: int = 0, limit: int = 50
    ) -> list[RecipientChannel]:
        return await self._host.store.read(entries.list_channels, profile_id, after, check_limit(limit))

    async def amend_channel(self, identifier: int, changes: Any, *, who: str = PYTHON) -> RecipientChannel:
        return await self._change(entries.amend_channel, "actions.channel.amended", who, identifier, changes)

    async def delete_channel(self, identifier: int, *, who: str = PYTHON) -> None:
        await self._change(entries.delete_channel, "actions.channel.deleted", who, identifier)

    async def verify(self, identifier: int) -> RecipientChannel:
        """Send a code through the channel. One address gets so many in an hour, whichever channels have it."""
        answer = await self._host.store.write(start_verification, identifier, new_nonce(), self._secret())
        if isinstance(answer, RecipientChannel):
            return answer
        raise Refused("this address has had its codes of an hour; ask again later", retry_after_seconds=answer)

    async def confirm(self, identifier: int, code: str) -> RecipientChannel:
        """The code came back: the channel is verified. Five wrong ones, and it has failed."""
        answer = await self._host.store.write(confirm, identifier, code, self._secret())
        self._changed()
        if isinstance(answer, str):
            raise refusal(answer)
        return answer

    async def trust(self, identifier: int, *, who: str = PYTHON) -> RecipientChannel:
        """A person's word that the channel is its owner's."""
        return await self._change(trust, "actions.channel.trusted", who, identifier)

    async def note_revealed(self, what: str, *, who: str = PYTHON) -> None:
        """Somebody looks at what is masked: that is kept."""
        await self._host.store.write(record_audit, who, "actions.revealed", what)

    # Routes

    async def create_route(self, document: dict[str, Any], *, who: str = PYTHON) -> ActionRoute:
        form = parse_form(document, RouteForm, "the route")
        return await self._change(entries.create_route, "actions.route.created", who, form)

    async def route(self, identifier: int) -> ActionRoute:
        return await self._host.store.read(entries.read_route, identifier)

    async def routes(self, *, action_plan_id: int | None = None, after: int = 0, limit: int = 50) -> list[ActionRoute]:
        return await self._host.store.read(entries.list_routes, action_plan_id, after, check_limit(limit))

    async def amend_route(self, identifier: int, changes: Any, *, who: str = PYTHON) -> ActionRoute:
        return await self._change(entries.amend_route, "actions.route.amended", who, identifier, changes)

    async def delete_route(self, identifier: int, *, who: str = PYTHON) -> None:
        await self._change(entries.delete_route, "actions.route.deleted", who, identifier)
