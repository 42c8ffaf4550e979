"""The only table of routes and their permitted callers, and the authentication of callers."""

from collections.abc import Collection, Mapping
from typing import Final, get_args

from msgspec import Struct

from tollgate.core.errors import AccessError, ErrorCode, permission_denied
from tollgate.core.principal import KeyRole, MemberRole, Principal, Role
from tollgate.ingress.formats import RESPONSES
from tollgate.stores.ports.base import KeyDirectory
from tollgate.web.http.paths import OPENAPI, STREAMING_PATHS


class Access(Struct, frozen=True, kw_only=True):
    """The callers that a route serves."""

    roles: frozenset[Role] = frozenset()
    """Roles that are served. A route without roles serves everybody and reads no key."""
    own: frozenset[Role] = frozenset()
    """The subset of `roles` whose members reach only their own objects."""
    operator: bool = False
    """True if only callers from the operator's workspace are served."""
    keyless: bool = False
    """True if callers without a key are also served."""
    notes_use: bool = True
    """True if a call is recorded as the last use of the key."""

    def is_limited(self, principal: Principal) -> bool:
        """Return whether a caller reaches only its member's own objects on the route.

        A key without a member belongs to the workspace, and reaches all objects of the workspace.
        """
        return principal.member_id is not None and principal.role in self.own


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
# A key of a member reaches only the member's objects; a key without a member reaches the whole
# workspace.
_OWN: Final[frozenset[Role]] = frozenset({"developer", "inference"})

METERED: Final = Access(roles=frozenset({"inference", "owner", "admin", "developer"}))
_OPEN: Final = Access()
_MANAGER: Final = Access(roles=frozenset({"management", "owner", "admin"}))
_READER: Final = Access(roles=_MANAGER.roles | {"read", "viewer"})
_ACCOUNTANT: Final = Access(roles=_READER.roles | _MONEY)
_EVERYBODY: Final = Access(roles=frozenset({*get_args(KeyRole), *get_args(MemberRole)}))
# Members see themselves, their team, and their own usage.
_PEOPLE: Final = Access(roles=_ACCOUNTANT.roles | _DEVELOPER, own=_OWN)
_KEY_READER: Final = Access(roles=_READER.roles | _DEVELOPER, own=_OWN)
_KEY_CHANGER: Final = Access(roles=_MANAGER.roles | _DEVELOPER, own=_OWN)
_RECORD: Final = Access(roles=_EVERYBODY.roles, own=_OWN)
# Responses and files are content, which the roles `read`, `viewer` and `billing` may not see.
_CONTENT: Final = Access(roles=_MANAGER.roles | METERED.roles, own=_OWN)
_KEPT_CONTENT: Final = Access(roles=_MANAGER.roles | _DEVELOPER, own=_OWN)
_CATALOG: Final = Access(roles=_EVERYBODY.roles, keyless=True)
_OPERATOR: Final = Access(roles=_MANAGER.roles, operator=True)
_OPERATORS_READER: Final = Access(roles=_READER.roles, operator=True)

# Routes of the sign-in app for members who have signed in.
_SIGNED_IN: Final = Access(roles=frozenset(get_args(MemberRole)), notes_use=False)

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
    ("POST", "/v1/route/explain"): Access(roles=_EVERYBODY.roles, notes_use=False),
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
    ("GET", "/v1/credits"): _ACCOUNTANT,
    ("GET", "/v1/credits/ledger"): _ACCOUNTANT,
    ("POST", "/v1/credits/grants"): _OPERATOR,
    ("POST", "/v1/credits/payments"): _OPERATOR,
    ("POST", "/v1/credits/adjustments"): _OPERATOR,
    ("POST", "/v1/credits/refunds"): _OPERATOR,
    ("GET", "/v1/generation"): _RECORD,
    ("GET", "/v1/generation/content"): _KEPT_CONTENT,
    ("GET", "/v1/generations"): _PEOPLE,
    ("GET", "/v1/activity"): _PEOPLE,
    ("GET", "/v1/audit"): _ACCOUNTANT,
    ("GET", "/v1/workspace"): _ACCOUNTANT,
    ("GET", "/v1/statement"): _ACCOUNTANT,
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
    keys: KeyDirectory, headers: Mapping[str, str], roles: Collection[Role]
) -> Principal:
    """Return the caller whose key is in the `Authorization: Bearer` header or in `x-api-key`.

    Raises AccessError(invalid_api_key) if there is no valid key, and AccessError(permission_denied)
    if the key's role is not in `roles`.
    """
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    if not scheme:
        # Anthropic's clients send the key in `x-api-key`.
        scheme, secret = "bearer", headers.get("x-api-key", "")
    if scheme.lower() != "bearer" or not secret.strip():
        raise AccessError(
            ErrorCode.INVALID_API_KEY,
            "Send your API key as `Authorization: Bearer <key>` or as `x-api-key: <key>`.",
        )
    principal = await keys.authenticate(secret.strip())
    if principal.role not in roles:
        raise permission_denied(_explain_refusal(principal, roles))
    return principal


def _explain_refusal(principal: Principal, roles: Collection[Role]) -> str:
    """Return a message that names the roles (of members, or of keys) that the route serves."""
    kind, kind_roles = ("member", MemberRole) if principal.session else ("key", KeyRole)
    needed = " or ".join(sorted(role for role in get_args(kind_roles) if role in roles))
    if not needed:
        other = "key" if principal.session else "session of a member who has signed in"
        return f"This needs a {other}, not a {kind} of role {principal.role}."
    return f"This needs a {kind} of role {needed}, not {principal.role}."
