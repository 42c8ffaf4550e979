"""A transport whose requests are signed with the credentials of a role session."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from tollgate.aws.container_credentials import CredentialsUnavailable
from tollgate.aws.role_sessions import RoleSession
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.providers.ports.base import (
    Frame,
    ReadyRequest,
    Timeouts,
    Transport,
    WireRequest,
)


class SessionTransport:
    """A transport that fetches and renews a session's credentials before it sends a request."""

    def __init__(self, slug: str, session: RoleSession, signing: Transport) -> None:
        self._slug = slug
        self._session = session
        self._signing = signing

    async def make_ready(self, request: WireRequest, timeouts: Timeouts) -> ReadyRequest:
        await self._prepare()
        return await self._signing.make_ready(request, timeouts)

    @asynccontextmanager
    async def open(
        self, request: WireRequest, timeouts: Timeouts
    ) -> AsyncIterator[AsyncIterator[Sequence[Frame]]]:
        await self._prepare()
        async with self._signing.open(request, timeouts) as frames:
            yield frames

    async def _prepare(self) -> None:
        try:
            await self._session.prepare()
        except CredentialsUnavailable as failure:
            raise UpstreamError(
                ErrorCode.PROVIDER_UNAVAILABLE,
                f"The provider {self._slug} cannot be called for this team ({failure}).",
            ) from failure
