"""The directory over HTTP: profiles, channels, routes; proving channels; whom no plan reaches any more."""

from __future__ import annotations

from fastapi import APIRouter

from ulak.actions.directory.forms import ChannelForm, ProfileForm, RouteForm
from ulak.app import Ulak
from ulak.http.routes.actions_models import (
    After,
    ChannelOut,
    CodeIn,
    Document,
    Limit,
    May,
    Number,
    NumberFilter,
    PageOf,
    ProfileOut,
    RouteOut,
    UnreachableOut,
    channel_out,
    following,
    profile_out,
    route_out,
    schema_for,
)
from ulak.http.routes.view import Reveal, may_reveal


def profiles_router(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/actions/profiles", tags=["actions: directory"])

    @router.post("", status_code=201, summary="Make a profile", openapi_extra=schema_for(ProfileForm))
    async def create(caller: May, body: Document) -> ProfileOut:
        return profile_out(await ulak.actions.directory.create_profile(body, who=caller.name))

    @router.get("", summary="List profiles")
    async def list_profiles(_: May, after: After = 0, limit: Limit = 50) -> PageOf[ProfileOut]:
        items = await ulak.actions.directory.profiles(after=after, limit=limit)
        return PageOf[ProfileOut](items=[profile_out(one) for one in items], next=following(items, limit))

    @router.get("/unreachable", summary="Profiles that plans lead to and that have no usable channel left")
    async def unreachable(_: May, after: After = 0, limit: Limit = 50) -> PageOf[UnreachableOut]:
        found = await ulak.actions.directory.unreachable(after=after, limit=limit)
        items = [UnreachableOut(recipient_profile_id=one, name=name) for one, name in found]
        return PageOf[UnreachableOut](items=items, next=following(items, limit, "recipient_profile_id"))

    @router.get("/{identifier}", summary="One profile")
    async def read(_: May, identifier: Number) -> ProfileOut:
        return profile_out(await ulak.actions.directory.profile(identifier))

    @router.patch("/{identifier}", summary="Change a profile", openapi_extra=schema_for(ProfileForm))
    async def amend(caller: May, identifier: Number, body: Document) -> ProfileOut:
        return profile_out(await ulak.actions.directory.amend_profile(identifier, body, who=caller.name))

    @router.delete("/{identifier}", status_code=204, summary="Delete a profile with its channels and routes")
    async def delete(caller: May, identifier: Number) -> None:
        await ulak.actions.directory.delete_profile(identifier, who=caller.name)

    @router.post("/{identifier}/forget", status_code=204, summary="Erase a person, also from the runs that reached it")
    async def forget(caller: May, identifier: Number) -> None:
        await ulak.actions.directory.forget(identifier, who=caller.name)

    return router


def channels_router(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/actions/channels", tags=["actions: directory"])

    @router.post("", status_code=201, summary="Make a channel of a profile", openapi_extra=schema_for(ChannelForm))
    async def create(caller: May, body: Document) -> ChannelOut:
        """It is enabled and has still to be verified: by a code, or by a person's word."""
        return channel_out(await ulak.actions.directory.create_channel(body, who=caller.name), reveal=False)

    @router.get("", summary="List channels")
    async def list_channels(
        caller: May, profile_id: NumberFilter = None, after: After = 0, limit: Limit = 50, reveal: Reveal = False
    ) -> PageOf[ChannelOut]:
        """Targets are masked, unless they may be revealed and that is asked for; revealing is audited."""
        shown = may_reveal(caller, reveal=reveal)
        items = await ulak.actions.directory.channels(profile_id=profile_id, after=after, limit=limit)
        if shown and items:
            first, last = items[0].id, items[-1].id
            await ulak.actions.directory.note_revealed(f"channels {first} to {last}", who=caller.name)
        return PageOf[ChannelOut](items=[channel_out(one, reveal=shown) for one in items], next=following(items, limit))

    @router.get("/{identifier}", summary="One channel")
    async def read(caller: May, identifier: Number, reveal: Reveal = False) -> ChannelOut:
        shown = may_reveal(caller, reveal=reveal)
        found = await ulak.actions.directory.channel(identifier)
        if shown:
            await ulak.actions.directory.note_revealed(f"channel {identifier}", who=caller.name)
        return channel_out(found, reveal=shown)

    @router.patch("/{identifier}", summary="Change a channel", openapi_extra=schema_for(ChannelForm))
    async def amend(caller: May, identifier: Number, body: Document) -> ChannelOut:
        """A new target has to be verified anew."""
        found = await ulak.actions.directory.amend_channel(identifier, body, who=caller.name)
        return channel_out(found, reveal=False)

    @router.delete("/{identifier}", status_code=204, summary="Delete a channel")
    async def delete(caller: May, identifier: Number) -> None:
        await ulak.actions.directory.delete_channel(identifier, who=caller.name)

    @router.post("/{identifier}/verify", status_code=202, summary="Send a code through the channel")
    async def verify(_: May, identifier: Number) -> ChannelOut:
        return channel_out(await ulak.actions.directory.verify(identifier), reveal=False)

    @router.post("/{identifier}/confirm", summary="Prove a channel by the code that came through it")
    async def confirm(_: May, identifier: Number, body: CodeIn) -> ChannelOut:
        return channel_out(await ulak.actions.directory.confirm(identifier, body.code), reveal=False)

    @router.post("/{identifier}/trust", summary="Vouch for a channel without a code; audited")
    async def trust(caller: May, identifier: Number) -> ChannelOut:
        return channel_out(await ulak.actions.directory.trust(identifier, who=caller.name), reveal=False)

    return router


def routes_router(ulak: Ulak) -> APIRouter:
    router = APIRouter(prefix="/api/actions/routes", tags=["actions: directory"])

    @router.post("", status_code=201, summary="Lead a plan's step to a profile", openapi_extra=schema_for(RouteForm))
    async def create(caller: May, body: Document) -> RouteOut:
        return route_out(await ulak.actions.directory.create_route(body, who=caller.name))

    @router.get("", summary="List routes")
    async def list_routes(
        _: May, action_plan_id: NumberFilter = None, after: After = 0, limit: Limit = 50
    ) -> PageOf[RouteOut]:
        items = await ulak.actions.directory.routes(action_plan_id=action_plan_id, after=after, limit=limit)
        return PageOf[RouteOut](items=[route_out(one) for one in items], next=following(items, limit))

    @router.get("/{identifier}", summary="One route")
    async def read(_: May, identifier: Number) -> RouteOut:
        return route_out(await ulak.actions.directory.route(identifier))

    @router.patch("/{identifier}", summary="Change a route", openapi_extra=schema_for(RouteForm))
    async def amend(caller: May, identifier: Number, body: Document) -> RouteOut:
        return route_out(await ulak.actions.directory.amend_route(identifier, body, who=caller.name))

    @router.delete("/{identifier}", status_code=204, summary="Delete a route")
    async def delete(caller: May, identifier: Number) -> None:
        await ulak.actions.directory.delete_route(identifier, who=caller.name)

    return router
