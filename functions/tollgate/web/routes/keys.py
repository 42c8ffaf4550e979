"""Keys: made, listed and stopped with a management key; each key may look at itself."""

from typing import Annotated

from fastapi import APIRouter, Depends

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import is_id
from tollgate.core.principal import Principal
from tollgate.web.services import Services
from tollgate.web.shapes import (
    KeyChangeBody,
    KeyObject,
    KeyReply,
    KeysReply,
    NewKeyBody,
    NewKeyReply,
)


def key_routes(services: Services) -> APIRouter:
    """`/v1/key` and `/v1/keys`."""
    router = APIRouter(prefix="/v1", tags=["keys"])
    caller = Annotated[Principal, Depends(services.caller)]
    administrator = Annotated[Principal, Depends(services.administrator)]

    @router.get("/key")
    async def show_own_key(principal: caller) -> KeyReply:
        """What the key of this request may still spend."""
        return await _shown(principal.workspace_id, principal.key_id)

    @router.post("/keys", status_code=201)
    async def create_key(principal: administrator, body: NewKeyBody) -> NewKeyReply:
        """Create a key; its secret is in this reply and nowhere else."""
        created = await services.keys.create(body.new_key(principal.workspace_id))
        return NewKeyReply(data=KeyObject.of(created.summary), key=created.secret)

    @router.get("/keys")
    async def list_keys(principal: administrator) -> KeysReply:
        """The keys of the workspace, oldest first."""
        keys = await services.keys.list(principal.workspace_id)
        return KeysReply(data=[KeyObject.of(key) for key in keys])

    @router.patch("/keys/{key_id}")
    async def change_key(principal: administrator, key_id: str, body: KeyChangeBody) -> KeyReply:
        """Disable a key: it is refused everywhere within five seconds."""
        key = None
        if is_id(key_id):
            key = await services.keys.disable(principal.workspace_id, key_id)
        if key is None:
            raise _no_such_key()
        return KeyReply(data=KeyObject.of(key))

    async def _shown(workspace_id: str, key_id: str) -> KeyReply:
        key = await services.keys.get(workspace_id, key_id)
        if key is None:
            raise _no_such_key()
        return KeyReply(data=KeyObject.of(key))

    return router


def _no_such_key() -> RequestError:
    return RequestError(
        ErrorCode.NOT_FOUND, "There is no such key in this workspace.", param="key_id"
    )
