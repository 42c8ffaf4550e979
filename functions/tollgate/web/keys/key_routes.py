"""Routes of keys: administration, and what a key may see of itself."""

from asyncio import gather
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query, Response

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.principal import Principal
from tollgate.core.records.audit import Actor
from tollgate.stores.ports.administration import KeyStore, KeySummary, NewKey
from tollgate.stores.ports.people import Member, Team
from tollgate.stores.rules.key_settings import KeySettings
from tollgate.web.admission import By, Caller, OwnThings, admitted_router
from tollgate.web.keys.given_keys import (
    check_key_change,
    check_new_key,
    is_session_key,
    refuse_session_name,
    session_key_refused,
)
from tollgate.web.keys.key_shapes import (
    DeletedKeyReply,
    KeyChangeBody,
    KeyObject,
    KeyReply,
    KeysQuery,
    KeysReply,
    NewKeyBody,
    NewKeyReply,
    RotationBody,
    refuse_unknown_tier,
)
from tollgate.web.own import Own
from tollgate.web.people.level_shapes import OwnKeyReply
from tollgate.web.services import Services

_Found = TypeVar("_Found", Member, Team)


def key_routes(services: Services) -> APIRouter:
    """Return the routes `/v1/key` and `/v1/keys`."""
    router = admitted_router(services, prefix="/v1", tag="keys")

    @router.get("/key")
    async def show_own_key(principal: Caller) -> OwnKeyReply:
        """Show the key of this request, with its spending and remaining limits.

        `levels` are the key's member and team, whose limits count as well.
        """
        return await _show_own(services, principal)

    @router.post("/keys", status_code=201)
    async def create_key(
        principal: Caller, own: OwnThings, by: By, body: NewKeyBody
    ) -> NewKeyReply:
        """Create a key; only this reply contains the secret."""
        new = body.new_key(principal.workspace_id, await services.key_tiers())
        return await _create(services, check_new_key(new, principal, own), by)

    @router.get("/keys")
    async def list_keys(own: OwnThings, wanted: Annotated[KeysQuery, Query()]) -> KeysReply:
        """List the keys of the workspace, oldest first.

        A page may have fewer keys than its limit, even none, while there is a next page.
        """
        return await _list(services.keys, own, wanted)

    @router.get("/keys/{key_id}")
    async def show_key(own: OwnThings, key_id: str) -> KeyReply:
        """Show one key of the workspace."""
        key = await _find(services.keys, own, key_id)
        return KeyReply(data=KeyObject.of(key))

    @router.patch("/keys/{key_id}")
    async def change_key(own: OwnThings, by: By, key_id: str, body: KeyChangeBody) -> KeyReply:
        """Change a key; a disabled key is refused everywhere within five seconds."""
        return await _change(services, own, key_id, body, by=by)

    _add_ends(router, services)
    return router


def _add_ends(router: APIRouter, services: Services) -> None:
    """Add the routes that replace a secret and delete a key."""

    @router.post("/keys/{key_id}/rotate")
    async def rotate_key(own: OwnThings, by: By, key_id: str, body: RotationBody) -> NewKeyReply:
        """Give a key a new secret; limits, spending and id stay the same."""
        key = await _find(services.keys, own, key_id)
        if is_session_key(key):
            raise session_key_refused()
        created = await services.keys.rotate(own.workspace_id, key_id, grace_s=body.grace_s, by=by)
        if created is None:
            raise _no_such_key()
        return NewKeyReply.of(created)

    @router.delete("/keys/{key_id}", responses={202: {"model": DeletedKeyReply}})
    async def delete_key(
        own: OwnThings, by: By, key_id: str, response: Response
    ) -> DeletedKeyReply:
        """Refuse a key for good; 202 while a request of the key is running: repeat until 200."""
        key = await services.keys.get(own.workspace_id, key_id)
        # A key whose deletion has begun is not found, and the caller repeats the call.
        if not own.is_all and (key is None or not own.has_key(key)):
            raise _no_such_key()
        if key is not None and is_session_key(key):
            raise session_key_refused()
        deleted = await services.keys.delete(own.workspace_id, key_id, by=by)
        if deleted is None:
            raise _no_such_key()
        if not deleted:
            response.status_code = 202
        return DeletedKeyReply(id=key_id, deleted=deleted)


def workspace_key_routes(services: Services) -> APIRouter:
    """Return the routes by which the operator administers the keys of every workspace."""
    router = admitted_router(services, prefix="/v1", tag="workspaces")

    @router.post("/workspaces/{workspace_id}/keys", status_code=201)
    async def create_workspace_key(by: By, workspace_id: str, body: NewKeyBody) -> NewKeyReply:
        """Create a key in a workspace, such as its first management key."""
        await services.find_workspace(workspace_id)
        new = body.new_key(workspace_id, await services.key_tiers())
        refuse_session_name(new.label)
        return await _create(services, new, by)

    @router.get("/workspaces/{workspace_id}/keys")
    async def list_workspace_keys(
        workspace_id: str, wanted: Annotated[KeysQuery, Query()]
    ) -> KeysReply:
        """List the keys of a workspace, oldest first."""
        await services.find_workspace(workspace_id)
        return await _list(services.keys, Own(workspace_id=workspace_id), wanted)

    @router.patch("/workspaces/{workspace_id}/keys/{key_id}")
    async def change_workspace_key(
        by: By, workspace_id: str, key_id: str, body: KeyChangeBody
    ) -> KeyReply:
        """Change or disable a key of a workspace, as the workspace's management keys may."""
        await services.find_workspace(workspace_id)
        return await _change(services, Own(workspace_id=workspace_id), key_id, body, by=by)

    return router


async def _create(services: Services, new: NewKey, by: Actor) -> NewKeyReply:
    services.check_days({"content_days": new.content_days, "response_days": new.response_days})
    return NewKeyReply.of(await services.keys.create(new, by=by))


async def _list(keys: KeyStore, own: Own, wanted: KeysQuery) -> KeysReply:
    page = await keys.list(own.workspace_id, after=wanted.cursor, limit=wanted.limit)
    return KeysReply(
        data=[KeyObject.of(key) for key in page.found if own.has_key(key) and wanted.accepts(key)],
        next_cursor=page.next,
        unreadable=list(page.unreadable),
    )


async def _change(
    services: Services, own: Own, key_id: str, body: KeyChangeBody, *, by: Actor
) -> KeyReply:
    changed = body.plain_settings()
    services.check_days({name: changed.get(name) for name in ("content_days", "response_days")})
    refuse_unknown_tier(changed.get("tier"), await services.key_tiers())

    def edit(settings: KeySettings) -> KeySettings:
        if not own.has_key(settings):
            raise _no_such_key()
        return check_key_change(settings, body.edit(settings), own)

    key = await services.keys.change(own.workspace_id, key_id, edit, by=by)
    if key is None:
        raise _no_such_key()
    return KeyReply(data=KeyObject.of(key))


async def _show_own(services: Services, principal: Principal) -> OwnKeyReply:
    workspace_id = principal.workspace_id
    key, balance, member, team = await gather(
        _find(services.keys, Own(workspace_id=workspace_id), principal.key_id),
        services.credits.balance(workspace_id),
        _get_or_none(services.members.get, workspace_id, principal.member_id),
        _get_or_none(services.teams.get, workspace_id, principal.team_id),
    )
    levels = [level for level in (member, team) if level is not None]
    return OwnKeyReply.of(key, levels, balance)


async def _get_or_none(
    get: Callable[[str, str], Awaitable[_Found | None]], workspace_id: str, id_: str | None
) -> _Found | None:
    return None if id_ is None else await get(workspace_id, id_)


async def _find(keys: KeyStore, own: Own, key_id: str) -> KeySummary:
    key = await keys.get(own.workspace_id, key_id)
    if key is None or not own.has_key(key):
        raise _no_such_key()
    return key


def _no_such_key() -> RequestError:
    return RequestError(
        ErrorCode.NOT_FOUND, "There is no such key in this workspace.", param="key_id"
    )
