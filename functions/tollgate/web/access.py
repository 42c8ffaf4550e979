"""The one table of routes and the keys that each of them serves."""

from collections.abc import Mapping
from typing import Final, get_args

from msgspec import Struct

from tollgate.core.principal import MemberRole, Role
from tollgate.ingress.formats import RESPONSES
from tollgate.web.paths import OPENAPI, STREAMING_PATHS


class Access(Struct, frozen=True, kw_only=True):
    """The keys that a route serves."""

    # Roles of the keys that are served. A route without any serves everybody and reads no key.
    roles: frozenset[Role] = frozenset()
    # Whether only keys of the operator's workspace are served.
    operator: bool = False
    # Whether a caller who sends no key is served too.
    keyless: bool = False
    # Whether a call is noted as the last use of the key.
    notes_use: bool = True


METERED: Final = Access(roles=frozenset({"inference"}))
_OPEN: Final = Access()
_MANAGER: Final = Access(roles=frozenset({"management"}))
_READER: Final = Access(roles=_MANAGER.roles | {"read"})
_EVERY_KEY: Final = Access(roles=_READER.roles | {"inference"})
# Responses and files are content, which keys of the role `read` do not see.
_CONTENT: Final = Access(roles=_MANAGER.roles | METERED.roles)
_CATALOG: Final = Access(roles=_EVERY_KEY.roles, keyless=True)
_OPERATOR: Final = Access(roles=_MANAGER.roles, operator=True)
_OPERATORS_READER: Final = Access(roles=_READER.roles, operator=True)

# Of the app that signs people in: callers who have signed in, and programs that have not yet.
_SIGNED_IN: Final = Access(roles=frozenset(get_args(MemberRole)), notes_use=False)

# By method and path. A route that is missing here cannot be declared.
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
    ("POST", "/v1/route/explain"): Access(roles=_EVERY_KEY.roles, notes_use=False),
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
    ("GET", "/v1/key"): _EVERY_KEY,
    ("GET", "/v1/keys"): _READER,
    ("POST", "/v1/keys"): _MANAGER,
    ("GET", "/v1/keys/{key_id}"): _READER,
    ("PATCH", "/v1/keys/{key_id}"): _MANAGER,
    ("DELETE", "/v1/keys/{key_id}"): _MANAGER,
    ("POST", "/v1/keys/{key_id}/rotate"): _MANAGER,
    ("GET", "/v1/credits"): _READER,
    ("GET", "/v1/credits/ledger"): _READER,
    ("POST", "/v1/credits/grants"): _OPERATOR,
    ("POST", "/v1/credits/payments"): _OPERATOR,
    ("POST", "/v1/credits/adjustments"): _OPERATOR,
    ("POST", "/v1/credits/refunds"): _OPERATOR,
    ("GET", "/v1/generation"): _EVERY_KEY,
    ("GET", "/v1/generation/content"): _MANAGER,
    ("GET", "/v1/generations"): _READER,
    ("GET", "/v1/statement"): _READER,
    ("GET", "/v1/activity"): _READER,
    ("GET", "/v1/audit"): _READER,
    ("GET", "/v1/workspace"): _READER,
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
    ("GET", "/v1/workspaces/{workspace_id}/keys"): _OPERATORS_READER,
    ("POST", "/v1/workspaces/{workspace_id}/keys"): _OPERATOR,
    ("PATCH", "/v1/workspaces/{workspace_id}/keys/{key_id}"): _OPERATOR,
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
