"""Routes that administer keys, and that show a key its own settings and spending."""

from asyncio import gather
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query, Response
from msgspec.structs import replace

from tollgate.core.errors import RequestError, invalid_request, not_found, permission_denied
from tollgate.core.principal import MEMBER_LABEL, Principal
from tollgate.core.records.activity import TEAM_LABEL
from tollgate.core.records.audit import Actor
from tollgate.stores.ports.administration import KeyStore, KeySummary, NewKey
from tollgate.stores.ports.people import SESSION_KEY_PREFIX, Member, Team
from tollgate.stores.rules.key_settings import KeySettings
from tollgate.web.access import GIVEN_KEYS, OWN_KEY_SETTINGS
from tollgate.web.admission import By, Caller, OwnThings, admitted_router, refuse_lockout
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

        `levels` are the key's member and team, whose limits apply as well.
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
        """Replace the secret of a key; limits, spending and id stay the same."""
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
        """Delete a key permanently. The status is 202 while a request of the key is running: repeat
        until 200.
        """
        key = await services.keys.get(own.workspace_id, key_id)
        # While a deletion is in progress, the key is not found, and the caller repeats the call.
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
        """Change or disable a key of a workspace, like the workspace's management keys."""
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
    if key_id == by.id:
        refuse_lockout(changed.get("allowed_ips"), by)

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
    return not_found("There is no such key in this workspace.", "key_id")


def check_new_key(new: NewKey, principal: Principal, own: Own) -> NewKey:
    """Check a new key and return it; a key that a member creates belongs to that member.

    Raises AccessError for a role or a setting that the caller may not give, and RequestError for a
    name that is reserved for session keys.
    """
    if new.role not in GIVEN_KEYS.get(principal.role, ()):
        raise permission_denied(
            f"A {principal.role} may not create keys of role {new.role}.", "role"
        )
    refuse_session_name(new.label)
    if own.is_all:
        return new
    if new.member_id not in (None, own.member_id):
        raise permission_denied("You may only create keys of your own.", "member_id")
    if new.team_id not in (None, own.team_id):
        raise permission_denied(
            "Your keys may only belong to your own team, or to none.", "team_id"
        )
    if new.tier is not None:
        raise permission_denied("Only an administrator may set a tier.", "tier")
    # If a key has no team, its spending is grouped under the team named by its label.
    for name, own_value in ((TEAM_LABEL, own.team_id), (MEMBER_LABEL, own.member_id)):
        if new.labels.get(name) not in (None, own_value):
            raise permission_denied(
                f"The label {name} of your keys must be your {name}.", f"labels.{name}"
            )
    return replace(new, member_id=own.member_id)


def check_key_change(old: KeySettings, new: KeySettings, own: Own) -> KeySettings:
    """Return the new settings of a key; raise AccessError or RequestError if they are not allowed.

    Members may rename and disable their own keys; administrators set limits and re-enable keys.
    """
    if is_session_key(old) and not _only_frees(old, new):
        raise session_key_refused()
    if new.label != old.label:
        refuse_session_name(new.label)
    if own.is_all:
        return new
    rest = replace(new, **{name: getattr(old, name) for name in OWN_KEY_SETTINGS})
    if rest != old or (old.disabled and not new.disabled):
        raise permission_denied(
            "Members may only rename or disable their keys; ask an administrator.", None
        )
    return new


def _only_frees(old: KeySettings, new: KeySettings) -> bool:
    """Return whether a change only enables a key and removes dollar limits.

    Earlier versions let administrators disable and limit session keys.
    """
    kept = replace(new, disabled=old.disabled, limits_nano_usd=old.limits_nano_usd)
    limits = old.limits_nano_usd.items()
    return kept == old and new.disabled <= old.disabled and new.limits_nano_usd.items() <= limits


def session_key_refused() -> RequestError:
    """Return the refusal of a change to a member's session key."""
    return invalid_request(
        "The key of a member's sessions is not managed as a key: end sessions at "
        "/v1/members/{member_id}/sessions, and limit or remove the member.",
        "key_id",
    )


def is_session_key(key: KeySettings) -> bool:
    """Return whether a key is a member's session key."""
    return key.member_id is not None and key.label.startswith(SESSION_KEY_PREFIX)


def refuse_session_name(name: str) -> None:
    """Raise RequestError for a name that is reserved for session keys."""
    if name.startswith(SESSION_KEY_PREFIX):
        raise invalid_request(
            f"name: {SESSION_KEY_PREFIX} is reserved for the keys of sessions.", "name"
        )
