"""Sessions opened with identity tokens, and the routes that Claude Code expects of a sign-in
gateway.
"""

import hashlib
import logging
import uuid
from typing import Any, Final

import msgspec
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from tollgate.core.clock import Clock
from tollgate.core.errors import AccessError, invalid_request, not_found, permission_denied
from tollgate.core.principal import Principal
from tollgate.ingress.validation import field_error
from tollgate.sign_in.identity import Identity, refused_token
from tollgate.stores.ports.people import SESSION_S_MAX
from tollgate.web.access import presented_secret
from tollgate.web.http.reply import read_body
from tollgate.web.sign_in.session_shapes import (
    ClosedSessionReply,
    IdentityTokenBody,
    NewSessionReply,
    SessionObject,
    SessionReply,
)
from tollgate.web.sign_in.sign_in_services import LoginServices, person

_BODY_BYTES_MAX: Final = 64 * 1024
_TELEMETRY_BYTES_MAX: Final = 4 * 1024 * 1024
_LOGGER: Final = logging.getLogger("tollgate.telemetry")
_NO_STORE: Final = {"cache-control": "no-store"}
_JSON: Final = "application/json"


class SessionRoutes:
    """The handlers of `/v1/session` and of the paths of Claude Code's Cloud gateway."""

    def __init__(self, services: LoginServices) -> None:
        self._services = services

    async def open(self, request: Request) -> Response:
        """Open a session for an identity token; the session ends an hour after the token was
        issued.
        """
        login = self._services.configured()
        body = _parse(await self._services.read_body(request, _BODY_BYTES_MAX))
        by = person(request)
        try:
            identity = await login.issuer.identify(body.token)
            lifetime_s = _lifetime_s(identity, login.sign_in.session_s, self._services.clock)
            member = await login.people.admit(identity, by=by)
        except AccessError as refused:
            await self._services.note_refusal(request, refused.code.value)
            raise
        opened = await login.sessions.open(
            member.workspace_id, member.id, lifetime_s=lifetime_s, by=by
        )
        if opened is None:
            raise permission_denied("The member was removed.")
        reply = NewSessionReply(
            data=SessionObject(
                workspace_id=member.workspace_id,
                member_id=member.id,
                team_id=member.team_id,
                role=member.role,
            ),
            key=opened.secret,
            expires_in=max(0, opened.expires_s - int(self._services.clock.now_s())),
        )
        return Response(to_json(reply), 201, _NO_STORE, _JSON)

    async def show(self, request: Request) -> Response:
        """Show the member that the caller is signed in as."""
        shown = _session_of(await self._services.admit(request))
        return Response(to_json(SessionReply(data=shown)), 200, _NO_STORE, _JSON)

    async def close(self, request: Request) -> Response:
        """Sign out: the session is refused within five seconds."""
        login = self._services.configured()
        await self._services.admit(request)
        closed = await login.sessions.close(presented_secret(request.headers), by=person(request))
        return Response(to_json(ClosedSessionReply(closed=closed)), 200, _NO_STORE, _JSON)

    async def show_settings(self, request: Request) -> Response:
        """Show Claude Code's settings for the caller's team and role; if there are
        none, reply 404.
        """
        login = self._services.configured()
        session = _session_of(await self._services.admit(request))
        settings = login.sign_in.settings_of(session.role, session.team_id)
        if settings is None:
            raise not_found("There are no managed settings for you.")
        return _settings_reply(settings, request.headers.get("if-none-match"))

    async def take_telemetry(self, request: Request) -> Response:
        """Receive Claude Code's telemetry (OTLP), log its size, and discard the content."""
        self._services.configured()
        principal = await self._services.admit(request)
        content = await read_body(
            request.receive,
            _TELEMETRY_BYTES_MAX,
            coding=request.headers.get("content-encoding"),
        )
        fields = {
            "signal": request.url.path.rpartition("/")[2],
            "bytes": len(content),
            "workspace_id": principal.workspace_id,
            "member_id": principal.member_id,
            "team_id": principal.team_id,
        }
        _LOGGER.info("telemetry was received", extra={"fields": fields})
        if content[:1] == b"{":
            return JSONResponse({})
        # The reply is an empty protobuf message, which has no bytes.
        return Response(b"", 200, media_type="application/x-protobuf")

    async def is_alive(self, _: Request) -> Response:
        """Report that the process runs, without access to the store."""
        return PlainTextResponse("ok")

    async def is_ready(self, _: Request) -> Response:
        """Report that the process can serve requests, after a read from the store."""
        await self._services.configured().codes.read("code", "-")
        return PlainTextResponse("ok")


def _parse(content: bytes) -> IdentityTokenBody:
    try:
        return IdentityTokenBody.model_validate_json(content)
    except ValidationError as invalid:
        first = invalid.errors()[0]
        if not first["loc"]:
            raise invalid_request("The body is not a JSON object.") from None
        raise field_error(first, first["loc"]) from None


def _lifetime_s(identity: Identity, most_s: int, clock: Clock) -> int:
    """Return how many seconds a session for a token may last.

    A session ends at most an hour after the token was issued, even if the token is valid for
    longer, because the issuer vouched for the person only at the time of issue.
    """
    ends_s = min(identity.issued_s + SESSION_S_MAX, identity.expires_s)
    left_s = min(most_s, ends_s - int(clock.now_s()))
    if left_s <= 0:
        raise refused_token("it is older than an hour")
    return left_s


def _session_of(principal: Principal) -> SessionObject:
    if principal.member_id is None:
        raise not_found("This key does not belong to a member.")
    return SessionObject.model_validate(
        {
            "workspace_id": principal.workspace_id,
            "member_id": principal.member_id,
            "team_id": principal.team_id,
            "role": principal.role,
        }
    )


def _settings_reply(settings: dict[str, Any], known: str | None) -> Response:
    content = msgspec.json.encode(settings, order="deterministic")
    # Claude Code computes the same checksum of its settings, and sends it (measured with 2.1.197).
    checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
    etag = f'"{checksum}"'
    headers = {"etag": etag, "cache-control": "private, no-cache"}
    if known is not None and etag in (each.strip().removeprefix("W/") for each in known.split(",")):
        return Response(status_code=304, headers=headers)
    body = {
        # Equal settings have the same id on every instance.
        "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"tollgate:settings:{checksum}")),
        "checksum": checksum,
        "settings": settings,
    }
    return Response(to_json(body), 200, headers, _JSON)
