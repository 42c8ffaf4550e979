"""Keys: administered with a management key; each key may look at itself."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from tollgate.core.audit import Actor
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.stores.administration import KEYS_PAGE_MAX, KeyStore
from tollgate.web.admission import By, Caller, admitted_router
from tollgate.web.key_shapes import (
    DeletedKeyReply,
    KeyChangeBody,
    KeyObject,
    KeyReply,
    KeysReply,
    NewKeyBody,
    NewKeyReply,
    RotationBody,
    refuse_unknown_tier,
)
from tollgate.web.services import Services


def key_routes(services: Services) -> APIRouter:
    """Return the routes `/v1/key` and `/v1/keys`."""
    router = admitted_router(services, prefix="/v1", tag="keys")

    @router.get("/key")
    async def show_own_key(principal: Caller) -> KeyReply:
        """Show the key of this request, with what it has spent and may still spend."""
        return await _show(services.keys, principal.workspace_id, principal.key_id)

    @router.post("/keys", status_code=201)
    async def create_key(principal: Caller, by: By, body: NewKeyBody) -> NewKeyReply:
        """Create a key; its secret is in this reply and nowhere else."""
        return await _create(services, principal.workspace_id, body, by)

    @router.get("/keys")
    async def list_keys(
        principal: Caller,
        cursor: str | None = None,
        limit: Annotated[int, Query(ge=1, le=KEYS_PAGE_MAX)] = KEYS_PAGE_MAX,
    ) -> KeysReply:
        """List the keys of the workspace, oldest first."""
        return await _list(services.keys, principal.workspace_id, after=cursor, limit=limit)

    @router.get("/keys/{key_id}")
    async def show_key(principal: Caller, key_id: str) -> KeyReply:
        """Show one key of the workspace."""
        return await _show(services.keys, principal.workspace_id, key_id)

    @router.patch("/keys/{key_id}")
    async def change_key(principal: Caller, by: By, key_id: str, body: KeyChangeBody) -> KeyReply:
        """Change a key; one that is disabled is refused everywhere within five seconds."""
        return await _change(services, principal.workspace_id, key_id, body, by=by)

    @router.post("/keys/{key_id}/rotate")
    async def rotate_key(principal: Caller, by: By, key_id: str, body: RotationBody) -> NewKeyReply:
        """Give a key a new secret; limits, spending and id stay."""
        created = await services.keys.rotate(
            principal.workspace_id, key_id, grace_s=body.grace_s, by=by
        )
        if created is None:
            raise _no_such_key()
        return NewKeyReply.of(created)

    @router.delete("/keys/{key_id}", responses={202: {"model": DeletedKeyReply}})
    async def delete_key(
        principal: Caller, by: By, key_id: str, response: Response
    ) -> DeletedKeyReply:
        """Refuse a key for good; 202 while a request of it runs: ask again until it is 200."""
        deleted = await services.keys.delete(principal.workspace_id, key_id, by=by)
        if deleted is None:
            raise _no_such_key()
        if not deleted:
            response.status_code = 202
        return DeletedKeyReply(id=key_id, deleted=deleted)

    return router


def workspace_key_routes(services: Services) -> APIRouter:
    """Return the routes by which the operator reaches the keys of every workspace."""
    router = admitted_router(services, prefix="/v1", tag="workspaces")

    @router.post("/workspaces/{workspace_id}/keys", status_code=201)
    async def create_workspace_key(by: By, workspace_id: str, body: NewKeyBody) -> NewKeyReply:
        """Create a key in a workspace, such as its first management key."""
        await services.find_workspace(workspace_id)
        return await _create(services, workspace_id, body, by)

    @router.get("/workspaces/{workspace_id}/keys")
    async def list_workspace_keys(
        workspace_id: str,
        cursor: str | None = None,
        limit: Annotated[int, Query(ge=1, le=KEYS_PAGE_MAX)] = KEYS_PAGE_MAX,
    ) -> KeysReply:
        """List the keys of a workspace, oldest first."""
        await services.find_workspace(workspace_id)
        return await _list(services.keys, workspace_id, after=cursor, limit=limit)

    @router.patch("/workspaces/{workspace_id}/keys/{key_id}")
    async def change_workspace_key(
        by: By, workspace_id: str, key_id: str, body: KeyChangeBody
    ) -> KeyReply:
        """Change or disable a key of a workspace, as its own management keys may."""
        await services.find_workspace(workspace_id)
        return await _change(services, workspace_id, key_id, body, by=by)

    return router


async def _create(
    services: Services, workspace_id: str, body: NewKeyBody, by: Actor
) -> NewKeyReply:
    new = body.new_key(workspace_id, await services.key_tiers())
    services.check_days({"content_days": new.content_days, "response_days": new.response_days})
    return NewKeyReply.of(await services.keys.create(new, by=by))


async def _list(keys: KeyStore, workspace_id: str, *, after: str | None, limit: int) -> KeysReply:
    page = await keys.list(workspace_id, after=after, limit=limit)
    return KeysReply(
        data=[KeyObject.of(key) for key in page.found],
        next_cursor=page.next,
        unreadable=list(page.unreadable),
    )


async def _change(
    services: Services, workspace_id: str, key_id: str, body: KeyChangeBody, *, by: Actor
) -> KeyReply:
    changed = body.plain_settings()
    services.check_days({name: changed.get(name) for name in ("content_days", "response_days")})
    refuse_unknown_tier(changed.get("tier"), await services.key_tiers())
    key = await services.keys.change(workspace_id, key_id, body.edit, by=by)
    if key is None:
        raise _no_such_key()
    return KeyReply(data=KeyObject.of(key))


async def _show(keys: KeyStore, workspace_id: str, key_id: str) -> KeyReply:
    key = await keys.get(workspace_id, key_id)
    if key is None:
        raise _no_such_key()
    return KeyReply(data=KeyObject.of(key))


def _no_such_key() -> RequestError:
    return RequestError(
        ErrorCode.NOT_FOUND, "There is no such key in this workspace.", param="key_id"
    )
