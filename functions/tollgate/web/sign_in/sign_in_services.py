"""The services of the sign-in routes."""

import asyncio

from msgspec import Struct
from starlette.requests import Request

from tollgate.core.clock import Clock
from tollgate.core.errors import invalid_request, not_found
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.core.records.audit import Actor, unauthenticated
from tollgate.engine.gateway import Journal
from tollgate.sign_in.browser import BrowserSignIn
from tollgate.sign_in.configuration import SignIn
from tollgate.sign_in.grants import Grants
from tollgate.sign_in.issuer import Issuer
from tollgate.sign_in.people import People
from tollgate.stores.ports.access_log import AccessLog
from tollgate.stores.ports.base import KeyDirectory
from tollgate.stores.ports.people import CodeStore, MemberStore, SessionStore
from tollgate.web.access import ACCESS, authenticate
from tollgate.web.http.reply import read_body
from tollgate.web.http.request_id import request_id_of
from tollgate.web.http.source_address import is_forwarded, source_of


class Login(Struct, frozen=True, kw_only=True):
    """The services needed to sign in through the configured issuer."""

    sign_in: SignIn
    issuer: Issuer
    people: People
    browser: BrowserSignIn
    grants: Grants
    codes: CodeStore
    members: MemberStore
    sessions: SessionStore


class LoginServices(Struct, frozen=True, kw_only=True):
    """The services of the sign-in app."""

    login: Login | None
    """None if no issuer is configured."""
    keys: KeyDirectory
    access_log: AccessLog
    ids: IdSource
    journal: Journal
    clock: Clock
    knows_callers: bool = True
    """False on a server without trusted proxies, where a forwarded request has the
    proxy's address.
    """
    body_s: float = 10.0
    """Seconds within which a body must arrive, because callers are not authenticated yet."""

    def configured(self) -> Login:
        """Return the services for sign-in; raise RequestError(not_found) if no issuer is
        configured.
        """
        if self.login is None:
            raise not_found(
                "Sign-in is not configured here: callers use API keys. The operator may set "
                "TOLLGATE_SIGN_IN_FILE."
            )
        return self.login

    def paced_address(self, request: Request) -> str | None:
        """Return the caller's network address; None if only the address of a proxy is known."""
        if not self.knows_callers and is_forwarded(request.headers):
            return None
        return source_of(request.scope)

    async def admit(self, request: Request) -> Principal:
        """Return the caller of a route; raise AccessError unless the access table allows it."""
        access = ACCESS[request.method, request.scope["path"]]
        return await authenticate(
            self.keys, request.headers, access.roles, source=source_of(request.scope)
        )

    async def note_refusal(self, request: Request, code: str) -> None:
        """Record a failed sign-in in the access log."""
        by = unauthenticated(source_of(request.scope), request_id_of(request.scope))
        target = f"{request.method} {request.scope['path']}"
        await self.access_log.note_refusal("sign_in.refused", target, code, by=by)

    async def read_body(self, request: Request, bytes_max: int) -> bytes:
        """Return a caller's body; raise RequestError if it is too large or arrives too late."""
        try:
            async with asyncio.timeout(self.body_s):
                coding = request.headers.get("content-encoding")
                return await read_body(request.receive, bytes_max, coding=coding)
        except TimeoutError as slow:
            raise invalid_request(f"The body did not arrive within {self.body_s:g} s.") from slow


def person(request: Request) -> Actor:
    """Return the actor of changes by a sign-in, before the member is known."""
    return Actor(
        kind="process",
        id="sign-in",
        origin=source_of(request.scope),
        request_id=request_id_of(request.scope),
    )
