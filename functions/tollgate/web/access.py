"""The only table of routes and their permitted callers, and the authentication of callers."""

import re
from collections.abc import Collection, Mapping
from typing import Final, get_args

from msgspec import Struct
from starlette.datastructures import Headers
from starlette.types import Scope

from tollgate.core.errors import AccessError, ErrorCode, permission_denied
from tollgate.core.networks import is_within, parse_networks
from tollgate.core.ownership import WHOLE_WORKSPACE, OwnerScope
from tollgate.core.principal import PLAYGROUND, KeyRole, MemberRole, Principal, Role
from tollgate.core.records.audit import Actor, unauthenticated
from tollgate.ingress.formats import MESSAGES, RESPONSES, VIDEOS
from tollgate.stores.ports.access_log import AccessLog
from tollgate.stores.ports.base import KeyDirectory
from tollgate.web.http.paths import OPENAPI, SCIM, STREAMING_PATHS
from tollgate.web.http.request_id import request_id_of
from tollgate.web.http.source_address import source_of


class Access(Struct, frozen=True, kw_only=True):
    """The callers that a route serves."""

    roles: frozenset[Role] = frozenset()
    """Roles that are served. A route without roles serves everybody and reads no key."""
    own: frozenset[Role] = frozenset()
    """The subset of `roles` that reaches only the objects of one owner (`OwnerScope`)."""
    operator: bool = False
    """True if only callers from the operator's workspace are served."""
    keyless: bool = False
    """True if callers without a key are also served."""
    notes_use: bool = True
    """True if a call is recorded as the last use of the key."""

    def reach(self, principal: Principal) -> OwnerScope:
        """Return the objects that a caller reaches on the route."""
        if principal.role in self.own:
            return OwnerScope(owner=principal.owner)
        return WHOLE_WORKSPACE


# Roles that a caller may give to members and take from them, by the caller's role. The operator may
# give all roles.
GIVEN_ROLES: Final[Mapping[Role, frozenset[MemberRole]]] = {
    "owner": frozenset(get_args(MemberRole)),
    "admin": frozenset(get_args(MemberRole)) - {"owner"},
    "management": frozenset(get_args(MemberRole)) - {"owner"},
}
# Roles of the keys that a caller may create, by the caller's role.
GIVEN_KEYS: Final[Mapping[Role, frozenset[KeyRole]]] = {
    "owner": frozenset(get_args(KeyRole)),
    "admin": frozenset(get_args(KeyRole)),
    "management": frozenset(get_args(KeyRole)),
    "developer": frozenset({"inference"}),
}
# Settings that members may change on their own keys; administrators set limits and re-enable keys.
OWN_KEY_SETTINGS: Final = ("label", "disabled")

# Settings that members may change about themselves; owners may change all settings.
OWN_MEMBER_SETTINGS: Final = ("display_name", "email")

_DEVELOPER: Final[frozenset[Role]] = frozenset({"developer"})
_MONEY: Final[frozenset[Role]] = frozenset({"billing"})
# Everybody who is signed in may list and end their own sessions.
_OWN_SESSIONS: Final[frozenset[Role]] = frozenset({"developer", "billing", "viewer"})
# A developer, or a member's key, can access the member's objects; a key without a member can access
# the objects that no member owns.
_OWN: Final[frozenset[Role]] = frozenset({"developer", "inference"})

EVERY_ROLE: Final[frozenset[Role]] = frozenset({*get_args(KeyRole), *get_args(MemberRole)})
# Header of a request that applies a file from git.
_COMMIT: Final = "x-tollgate-commit"
_COMMIT_FORM: Final = re.compile(r"[0-9A-Za-z._-]{1,64}\+?")
# The place of an authenticated caller in the scope of a request.
PRINCIPAL: Final = "tollgate.principal"
_RECORDED: Final = frozenset({ErrorCode.INVALID_API_KEY, ErrorCode.PERMISSION_DENIED})
# `own` also applies to the files and responses that the body of a metered request names.
_SPENDER: Final = Access(roles=frozenset({"inference", "owner", "admin", "developer"}), own=_OWN)
# A playground secret can only use these routes and revoke itself, so a thief can neither read nor
# change anything.
METERED: Final = Access(roles=_SPENDER.roles | {PLAYGROUND}, own=_OWN | {PLAYGROUND})
_OPEN: Final = Access()
_MANAGER: Final = Access(roles=frozenset({"management", "owner", "admin"}))
# Owners and management keys, but not admins.
_OWNER: Final = Access(roles=frozenset({"management", "owner"}))
_READER: Final = Access(roles=_MANAGER.roles | {"read", "viewer"})
_ACCOUNTANT: Final = Access(roles=_READER.roles | _MONEY)
_EVERYBODY: Final = Access(roles=EVERY_ROLE)
# Members may see themselves, their team, and their own usage.
_PEOPLE: Final = Access(roles=_ACCOUNTANT.roles | _DEVELOPER, own=_OWN)
_SESSION_READER: Final = Access(roles=_PEOPLE.roles, own=_OWN_SESSIONS - {"viewer"})
_SESSION_ENDER: Final = Access(roles=_MANAGER.roles | _OWN_SESSIONS, own=_OWN_SESSIONS)
_KEY_READER: Final = Access(roles=_READER.roles | _DEVELOPER, own=_OWN)
_KEY_CHANGER: Final = Access(roles=_MANAGER.roles | _DEVELOPER, own=_OWN)
_RECORD: Final = Access(roles=_EVERYBODY.roles, own=_OWN)
# Responses and files are content, which the roles `read`, `viewer` and `billing` may not see.
_CONTENT: Final = Access(roles=_MANAGER.roles | _SPENDER.roles, own=_OWN)
_KEPT_CONTENT: Final = Access(roles=_MANAGER.roles | _DEVELOPER, own=_OWN)
_CATALOG: Final = Access(roles=_EVERYBODY.roles, keyless=True)
_OPERATOR: Final = Access(roles=_MANAGER.roles, operator=True)
_OPERATORS_READER: Final = Access(roles=_READER.roles, operator=True)

# Routes of the sign-in app for members who have signed in.
_SIGNED_IN: Final = Access(roles=frozenset(get_args(MemberRole)), notes_use=False)

MESSAGE_BATCHES: Final = f"{MESSAGES.path}/batches"

# Access by method and path. A route that is missing here cannot be declared.
ACCESS: Final[Mapping[tuple[str, str], Access]] = {
    **{("POST", path): METERED for path in STREAMING_PATHS},
    ("GET", OPENAPI): _OPEN,
    ("GET", "/"): _OPEN,
    ("GET", "/console"): _OPEN,
    ("GET", "/console/{file}"): _OPEN,
    ("GET", "/docs"): _OPEN,
    ("GET", "/docs/{file}"): _OPEN,
    ("GET", "/v1/health/live"): _OPEN,
    ("GET", "/v1/health/ready"): _OPEN,
    ("GET", "/v1/models"): _CATALOG,
    ("GET", "/v1/models/{author}/{slug}/endpoints"): _CATALOG,
    ("GET", "/v1/models/{name}"): _CATALOG,
    ("GET", "/v1/catalog"): _READER,
    ("POST", "/v1/route/explain"): Access(roles=_EVERYBODY.roles, own=_OWN, notes_use=False),
    ("GET", f"{RESPONSES.path}/{{response_id}}"): _CONTENT,
    ("DELETE", f"{RESPONSES.path}/{{response_id}}"): _CONTENT,
    ("GET", f"{RESPONSES.path}/{{response_id}}/input_items"): _CONTENT,
    ("POST", f"{RESPONSES.path}/{{response_id}}/cancel"): _CONTENT,
    ("GET", "/v1/files"): _CONTENT,
    ("POST", "/v1/files"): _CONTENT,
    ("POST", "/v1/files/presigned"): _CONTENT,
    ("GET", "/v1/files/{file_id}"): _CONTENT,
    ("DELETE", "/v1/files/{file_id}"): _CONTENT,
    ("GET", "/v1/files/{file_id}/content"): _CONTENT,
    ("POST", "/v1/uploads"): _CONTENT,
    ("POST", "/v1/uploads/{upload_id}/parts"): _CONTENT,
    ("POST", "/v1/uploads/{upload_id}/complete"): _CONTENT,
    ("POST", "/v1/uploads/{upload_id}/cancel"): _CONTENT,
    # A batch spends money like a metered request, so the same roles may create it.
    ("POST", "/v1/batches"): _SPENDER,
    ("GET", "/v1/batches"): _CONTENT,
    ("GET", "/v1/batches/{batch_id}"): _CONTENT,
    ("POST", "/v1/batches/{batch_id}/cancel"): _CONTENT,
    ("POST", MESSAGE_BATCHES): _SPENDER,
    ("GET", MESSAGE_BATCHES): _CONTENT,
    ("GET", f"{MESSAGE_BATCHES}/{{batch_id}}"): _CONTENT,
    ("DELETE", f"{MESSAGE_BATCHES}/{{batch_id}}"): _CONTENT,
    ("GET", f"{MESSAGE_BATCHES}/{{batch_id}}/results"): _CONTENT,
    ("POST", f"{MESSAGE_BATCHES}/{{batch_id}}/cancel"): _CONTENT,
    ("GET", VIDEOS.path): _CONTENT,
    ("GET", f"{VIDEOS.path}/{{video_id}}"): _CONTENT,
    ("GET", f"{VIDEOS.path}/{{video_id}}/content"): _CONTENT,
    ("DELETE", f"{VIDEOS.path}/{{video_id}}"): _CONTENT,
    # Management keys may create keys that spend, so they may open a playground as well.
    ("POST", "/v1/playground"): Access(roles=_SPENDER.roles | {"management"}, notes_use=False),
    ("DELETE", "/v1/playground"): Access(roles=frozenset({PLAYGROUND}), notes_use=False),
    ("GET", "/v1/key"): _EVERYBODY,
    ("GET", "/v1/keys"): _KEY_READER,
    ("POST", "/v1/keys"): _KEY_CHANGER,
    ("GET", "/v1/keys/{key_id}"): _KEY_READER,
    ("PATCH", "/v1/keys/{key_id}"): _KEY_CHANGER,
    ("DELETE", "/v1/keys/{key_id}"): _KEY_CHANGER,
    ("POST", "/v1/keys/{key_id}/rotate"): _KEY_CHANGER,
    ("GET", "/v1/teams"): _PEOPLE,
    ("POST", "/v1/teams"): _MANAGER,
    ("GET", "/v1/teams/{team_id}"): _PEOPLE,
    ("PATCH", "/v1/teams/{team_id}"): _MANAGER,
    ("DELETE", "/v1/teams/{team_id}"): _MANAGER,
    ("GET", "/v1/members"): _PEOPLE,
    ("POST", "/v1/members"): _MANAGER,
    ("GET", "/v1/members/{member_id}"): _PEOPLE,
    ("PATCH", "/v1/members/{member_id}"): _MANAGER,
    ("DELETE", "/v1/members/{member_id}"): _MANAGER,
    ("GET", "/v1/members/{member_id}/sessions"): _SESSION_READER,
    ("DELETE", "/v1/members/{member_id}/sessions"): _SESSION_ENDER,
    ("DELETE", "/v1/members/{member_id}/sessions/{session_id}"): _SESSION_ENDER,
    ("GET", f"{SCIM}/Users"): _MANAGER,
    ("POST", f"{SCIM}/Users"): _MANAGER,
    ("GET", f"{SCIM}/Users/{{member_id}}"): _MANAGER,
    ("PATCH", f"{SCIM}/Users/{{member_id}}"): _MANAGER,
    ("PUT", f"{SCIM}/Users/{{member_id}}"): _MANAGER,
    ("DELETE", f"{SCIM}/Users/{{member_id}}"): _MANAGER,
    ("GET", "/v1/credits"): _ACCOUNTANT,
    ("GET", "/v1/credits/ledger"): _ACCOUNTANT,
    ("POST", "/v1/credits/grants"): _OPERATOR,
    ("POST", "/v1/credits/payments"): _OPERATOR,
    ("POST", "/v1/credits/adjustments"): _OPERATOR,
    ("POST", "/v1/credits/refunds"): _OPERATOR,
    ("GET", "/v1/generation"): _RECORD,
    ("GET", "/v1/generation/content"): _KEPT_CONTENT,
    ("GET", "/v1/generations"): _RECORD,
    ("DELETE", "/v1/cache"): _MANAGER,
    ("GET", "/v1/activity"): _PEOPLE,
    ("GET", "/v1/audit"): _ACCOUNTANT,
    ("GET", "/v1/audit/days"): _ACCOUNTANT,
    ("GET", "/v1/workspace"): _ACCOUNTANT,
    ("GET", "/v1/statement"): _ACCOUNTANT,
    ("GET", "/v1/holds"): _OWNER,
    ("POST", "/v1/holds"): _OWNER,
    ("DELETE", "/v1/holds/{hold_id}"): _OWNER,
    ("GET", "/v1/erasures"): _OWNER,
    ("POST", "/v1/erasures"): _OWNER,
    ("GET", "/v1/webhooks"): _MANAGER,
    ("POST", "/v1/webhooks"): _MANAGER,
    ("GET", "/v1/webhooks/{webhook_id}"): _MANAGER,
    ("PATCH", "/v1/webhooks/{webhook_id}"): _MANAGER,
    ("DELETE", "/v1/webhooks/{webhook_id}"): _MANAGER,
    ("POST", "/v1/webhooks/{webhook_id}/rotate"): _MANAGER,
    ("POST", "/v1/webhooks/{webhook_id}/test"): _MANAGER,
    ("GET", "/v1/webhooks/{webhook_id}/deliveries"): _MANAGER,
    ("POST", "/v1/webhooks/{webhook_id}/deliveries/{event_id}/redeliver"): _MANAGER,
    ("GET", "/v1/workspaces"): _OPERATORS_READER,
    ("POST", "/v1/workspaces"): _OPERATOR,
    ("GET", "/v1/workspaces/{workspace_id}"): _OPERATORS_READER,
    ("PATCH", "/v1/workspaces/{workspace_id}"): _OPERATOR,
    ("GET", "/v1/workspaces/{workspace_id}/credits"): _OPERATORS_READER,
    ("GET", "/v1/workspaces/{workspace_id}/statement"): _OPERATORS_READER,
    ("GET", "/v1/workspaces/{workspace_id}/activity"): _OPERATORS_READER,
    ("GET", "/v1/workspaces/{workspace_id}/keys"): _OPERATORS_READER,
    ("POST", "/v1/workspaces/{workspace_id}/keys"): _OPERATOR,
    ("PATCH", "/v1/workspaces/{workspace_id}/keys/{key_id}"): _OPERATOR,
    ("GET", "/v1/workspaces/{workspace_id}/members"): _OPERATORS_READER,
    ("POST", "/v1/workspaces/{workspace_id}/members"): _OPERATOR,
    ("PATCH", "/v1/workspaces/{workspace_id}/members/{member_id}"): _OPERATOR,
    ("GET", "/v1/workspaces/{workspace_id}/holds"): _OPERATOR,
    ("POST", "/v1/workspaces/{workspace_id}/holds"): _OPERATOR,
    ("DELETE", "/v1/workspaces/{workspace_id}/holds/{hold_id}"): _OPERATOR,
    ("GET", "/v1/workspaces/{workspace_id}/erasures"): _OPERATOR,
    ("POST", "/v1/workspaces/{workspace_id}/erasures"): _OPERATOR,
    ("GET", "/.well-known/oauth-authorization-server"): _OPEN,
    ("GET", "/oauth/authorize"): _OPEN,
    ("GET", "/oauth/callback"): _OPEN,
    ("POST", "/oauth/device_authorization"): _OPEN,
    ("POST", "/oauth/token"): _OPEN,
    ("POST", "/oauth/revoke"): _OPEN,
    ("GET", "/device"): _OPEN,
    ("POST", "/device"): _OPEN,
    ("GET", "/healthz"): _OPEN,
    ("GET", "/readyz"): _OPEN,
    ("POST", "/v1/session"): _OPEN,
    ("GET", "/v1/session"): _SIGNED_IN,
    ("DELETE", "/v1/session"): _SIGNED_IN,
    ("GET", "/managed/settings"): _SIGNED_IN,
    ("POST", "/v1/logs"): _SIGNED_IN,
    ("POST", "/v1/metrics"): _SIGNED_IN,
    ("POST", "/v1/traces"): _SIGNED_IN,
}


def has_key(headers: Mapping[str, str]) -> bool:
    """Return whether a request has a key, valid or not."""
    return "authorization" in headers or "x-api-key" in headers


async def authenticate(
    keys: KeyDirectory,
    headers: Mapping[str, str],
    roles: Collection[Role],
    *,
    source: str | None,
) -> Principal:
    """Return the caller whose key is in the `Authorization: Bearer` header or in `x-api-key`.

    `source` is the address that the request comes from. Raises AccessError(invalid_api_key) if
    there is no valid key, and AccessError(permission_denied) if the key's role is not in `roles`,
    or if the key or its workspace does not admit the address.
    """
    principal = await _find_caller(keys, headers)
    for networks in filter(None, (principal.allowed_ips, principal.workspace_ips)):
        if not is_within(source, parse_networks(networks)):
            raise permission_denied(f"This key may not be used from {source or 'this address'}.")
    if principal.role not in roles:
        raise permission_denied(_explain_refusal(principal, roles))
    return principal


async def _find_caller(keys: KeyDirectory, headers: Mapping[str, str]) -> Principal:
    """Return the caller whose key a request has; raise AccessError without a valid key."""
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    if not scheme:
        # Anthropic's clients send the key in `x-api-key`.
        scheme, secret = "bearer", headers.get("x-api-key", "")
    if scheme.lower() != "bearer" or not secret.strip():
        raise AccessError(
            ErrorCode.INVALID_API_KEY,
            "Send your API key as `Authorization: Bearer <key>` or as `x-api-key: <key>`.",
        )
    return await keys.authenticate(secret.strip())


def presented_secret(headers: Mapping[str, str]) -> str:
    """Return the secret of an authenticated request."""
    return headers.get("authorization", "").partition(" ")[2].strip() or headers["x-api-key"]


def actor_of(scope: Scope, principal: Principal | None) -> Actor:
    """Return the actor of a request; `principal` is None without a valid key."""
    origin, request_id = source_of(scope), request_id_of(scope)
    if principal is None:
        return unauthenticated(origin, request_id)
    commit = Headers(scope=scope).get(_COMMIT, "")
    return Actor(
        kind="session" if principal.session else "key",
        id=principal.key_id,
        name=principal.label,
        workspace_id=principal.workspace_id,
        member_id=principal.member_id,
        origin=origin,
        request_id=request_id,
        commit=commit if _COMMIT_FORM.fullmatch(commit) else None,
    )


async def note_refusal(
    access_log: AccessLog,
    keys: KeyDirectory,
    refused: AccessError,
    *,
    target: str,
    scope: Scope,
) -> None:
    """Record that a call was refused because of its key or role; ignore other refusals."""
    if refused.code not in _RECORDED:
        return
    principal: Principal | None = scope.get(PRINCIPAL)
    if principal is None and refused.code is ErrorCode.PERMISSION_DENIED:
        # The key is valid, and cached by the look-up that refused its role or its address.
        principal = await _find_caller(keys, Headers(scope=scope))
    by = actor_of(scope, principal)
    await access_log.note_refusal("call.refused", target, refused.code.value, by=by)


def _explain_refusal(principal: Principal, roles: Collection[Role]) -> str:
    """Return a message that names the roles (of members, or of keys) that the route serves."""
    if principal.role == PLAYGROUND:
        return "A playground secret may only generate answers, not in batches or in the background."
    kind, kind_roles = ("member", MemberRole) if principal.session else ("key", KeyRole)
    needed = " or ".join(sorted(role for role in get_args(kind_roles) if role in roles))
    if not needed:
        other = "key" if principal.session else "session of a member who has signed in"
        return f"This needs a {other}, not a {kind} of role {principal.role}."
    return f"This needs a {kind} of role {needed}, not {principal.role}."
