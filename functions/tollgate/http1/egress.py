"""Sends requests for URLs from callers, customers and web pages, to public addresses only.

A host name is resolved only once, because a second lookup might return another address. All
addresses of the host must be public. Redirects are checked in the same way.
https://cheatsheetseries.owasp.org/cheatsheets/Server_Side_Request_Forgery_Prevention_Cheat_Sheet.html

This module is not used for servers that the operator configures, such as providers and collectors,
which may have any address.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import cache, partial
from typing import Final

from msgspec import Struct

from tollgate.core.addresses import DomainRules, is_address, is_disguised, is_public
from tollgate.http1.connecting import TlsContext, connect, make_buffer, tls_context
from tollgate.http1.connection import Connection
from tollgate.http1.errors import (
    CannotConnect,
    ForbiddenUrl,
    InvalidRequest,
    ReplyTooLong,
    TimedOut,
    UnusableReply,
)
from tollgate.http1.exchange import send_alone
from tollgate.http1.request import USUAL_HEADERS, Origin, Request, parse_url

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
# Time limit to connect to an address if the host has further addresses.
_ADDRESS_S: Final = 2.0
# Maximum number of concurrent lookups of host names.
_THREADS_MAX: Final = 16
_ANY_DOMAIN: Final = DomainRules()

# Returns the addresses of a host and port.
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class FetchLimits(Struct, frozen=True, kw_only=True):
    """The limits for one fetch; `total_s` includes all redirects."""

    body_bytes_max: int = 20 * 1024 * 1024
    total_s: float = 10.0
    redirects_max: int = 3
    take: Callable[[int], None] | None = None
    """Called with the size of the content before it is read; see `Reply.read_all`."""


class Fetched(Struct, frozen=True, kw_only=True):
    """The content that was fetched from a URL."""

    url: str
    """The URL after redirects."""
    content: bytes
    claimed_type: str | None
    """The server's `Content-Type` header; None if the server sent none."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host from the system's resolver; raise OSError.

    Lookups run in separate threads, because an untrusted name server that does not answer blocks a
    thread. The event loop's own threads stay free to resolve the names of providers.
    """
    find = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    answers = await asyncio.get_running_loop().run_in_executor(_threads(), find)
    return [str(address[0]) for *_, address in answers]


@cache
def _threads() -> Executor:
    # Imported with the first lookup, because every process creates an Egress at its start.
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(_THREADS_MAX, thread_name_prefix="guard")


class Egress(Struct, frozen=True):
    """Connects to public addresses only.

    `also_allowed` admits further addresses, for tests that serve from loopback.
    """

    resolve: Resolve = resolve
    also_allowed: frozenset[str] = frozenset()
    tls: TlsContext = tls_context

    async def connect(self, origin: Origin) -> Connection:
        """Connect to a server's first reachable address; raise ForbiddenUrl or CannotConnect."""
        addresses = await self._addresses(origin)
        reach = partial(connect, origin, make_buffer(), tls=self.tls)
        for address in addresses[:-1]:
            with suppress(CannotConnect):
                return await reach(address=address, timeout_s=_ADDRESS_S)
        return await reach(address=addresses[-1])

    async def fetch(
        self, url: str, limits: FetchLimits, domains: DomainRules = _ANY_DOMAIN
    ) -> Fetched:
        """Return the content at a URL, which need not be escaped yet; raise HttpError on failure.

        `domains` also applies to redirects, so an allowed page cannot lead to another domain.
        """
        try:
            async with asyncio.timeout(limits.total_s):
                return await self._follow(_escape(url), limits, domains)
        except TimeoutError as late:
            raise TimedOut("did not answer in time") from late

    async def _follow(self, url: str, limits: FetchLimits, domains: DomainRules) -> Fetched:
        for _ in range(limits.redirects_max + 1):
            try:
                origin, _target = parse_url(url)
            except InvalidRequest as invalid:
                raise ForbiddenUrl("must be an http(s) URL with a plain host") from invalid
            if not domains.admits(origin.host):
                raise ForbiddenUrl("leads to a domain that is not allowed")
            result = await self._get(url, limits)
            if isinstance(result, Fetched):
                return result
            url = result
        raise UnusableReply("redirects too many times")

    async def _get(self, url: str, limits: FetchLimits) -> Fetched | str:
        """Return the content at a URL, or the URL that it redirects to."""
        request = Request(method="GET", url=url, headers=USUAL_HEADERS)
        async with send_alone(request, connect=self.connect) as reply:
            if reply.status in _REDIRECTS:
                return _escape(reply.headers.get("location", ""), base=url)
            if reply.status != 200:
                raise UnusableReply("could not be fetched")
            if reply.headers.get("content-encoding", "identity").lower() != "identity":
                raise UnusableReply("is sent in an encoding that was not requested")
            try:
                content = await reply.read_all(limits.body_bytes_max, limits.take)
            except ReplyTooLong as large:
                raise UnusableReply(
                    f"has content of more than {limits.body_bytes_max} bytes"
                ) from large
            claimed_type = reply.headers.get("content-type")
            return Fetched(url=url, content=content, claimed_type=claimed_type)

    async def _addresses(self, origin: Origin) -> Sequence[str]:
        """Return the addresses of a server; raise ForbiddenUrl unless all of them are public."""
        host = origin.host
        if is_disguised(host):
            raise ForbiddenUrl("must be an http(s) URL with a plain host")
        try:
            addresses = (host,) if is_address(host) else await self.resolve(host, origin.port)
        except (OSError, UnicodeError) as unknown:
            raise CannotConnect("no such name") from unknown
        if not addresses or not all(self._is_allowed(address) for address in addresses):
            raise ForbiddenUrl("does not lead to a public address")
        return addresses

    def _is_allowed(self, address: str) -> bool:
        return address in self.also_allowed or is_public(address)


def _escape(text: str, *, base: str = "") -> str:
    """Return an escaped URL without its fragment, relative to `base`; raise ForbiddenUrl."""
    # Imported with the first URL, because every process creates an Egress at its start.
    from yarl import URL

    try:
        url = URL(text)
        return str((URL(base).join(url) if base else url).with_fragment(None))
    except ValueError as invalid:
        raise ForbiddenUrl("must be an http(s) URL with a plain host") from invalid
