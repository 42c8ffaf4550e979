"""The paths of the sign-in app."""

from typing import Final

from tollgate.sign_in.browser import CALLBACK

DISCOVERY: Final = "/.well-known/oauth-authorization-server"
AUTHORIZE: Final = "/oauth/authorize"
DEVICE_AUTHORIZATION: Final = "/oauth/device_authorization"
TOKEN: Final = "/oauth/token"  # noqa: S105 - a path
REVOKE: Final = "/oauth/revoke"
DEVICE_PAGE: Final = "/device"
SESSION: Final = "/v1/session"
MANAGED_SETTINGS: Final = "/managed/settings"
TELEMETRY: Final = ("/v1/logs", "/v1/metrics", "/v1/traces")
LOGIN_PATHS: Final = frozenset(
    {
        DISCOVERY,
        AUTHORIZE,
        CALLBACK,
        DEVICE_AUTHORIZATION,
        TOKEN,
        REVOKE,
        DEVICE_PAGE,
        SESSION,
        MANAGED_SETTINGS,
        "/healthz",
        "/readyz",
        *TELEMETRY,
    }
)
