"""The fetcher of media by URL, from public addresses only.

A name is resolved once, every address it has must be public, and the connection goes to one of
those: a second query might get another answer. Each redirect is checked in the same way.
https://cheatsheetseries.owasp.org/cheatsheets/Server_Side_Request_Forgery_Prevention_Cheat_Sheet.html
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.addresses import DomainRules, is_address, is_disguised, is_public
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.http1.connecting import connect, make_buffer
from tollgate.http1.connection import Connection
from tollgate.http1.errors import CannotConnect, HttpError, ReplyTooLong
from tollgate.http1.reply import Reply
from tollgate.http1.request import Request, parse_url, write_request
from tollgate.providers.base import FetchedMedia

if TYPE_CHECKING:
    # Imported with the first URL, as it is by `fetch` and `fetch_page`.
    from yarl import URL

    # Known to few processes: the guard is made at the start of each.
    from tollgate.tools.base import FetchedPage, PageLimits, RunFault

_HEADERS: Final = {"user-agent": "tollgate", "accept": "*/*", "accept-encoding": "identity"}
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PORTS: Final = {"http": 80, "https": 443}
# For one of several addresses.
_ADDRESS_S: Final = 2.0
# Names that are resolved at a time.
_THREADS_MAX: Final = 16

# The addresses of a name.
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class FetchLimits(Struct, frozen=True, kw_only=True):
    """Limits of one fetch: bytes, seconds with all redirects, and redirects."""

    body_bytes_max: int = 20 * 1024 * 1024
    total_s: float = 10.0
    redirects_max: int = 3


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name by the system's resolver.

    In threads of the guard's own: a stranger's name server that does not answer keeps a thread for
    as long as the system waits, and those of the loop resolve the names of providers.
    """
    find = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_threads(), find)
    return [str(address[0]) for *_, address in found]


@cache
def _threads() -> Executor:
    # Imported with the first name: the guard is made at the start of each process.
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(_THREADS_MAX, thread_name_prefix="guard")


class MediaGuard:
    """A fetcher that connects to public addresses only.

    `also_allowed` are addresses that are let through besides: tests serve from loopback.
    """

    def __init__(
        self,
        *,
        resolve: Resolve = resolve,
        limits: FetchLimits | None = None,
        also_allowed: frozenset[str] = frozenset(),
    ) -> None:
        self._resolve = resolve
        self._limits = limits or FetchLimits()
        self._also_allowed = also_allowed

    async def fetch(
        self, url: str, *, field: str = "messages", bytes_max: int | None = None
    ) -> FetchedMedia:
        """Fetch the whole body; RequestError for a URL that must not or cannot be fetched."""
        # yarl is imported with the first address: most processes fetch nothing.
        from yarl import URL

        try:
            async with asyncio.timeout(self._limits.total_s):
                found = await self._follow(URL(url), bytes_max or self._limits.body_bytes_max)
                return replace(found, url="")
        except _Refused as refused:
            raise _refusal(str(refused), field) from refused
        except TimeoutError as late:
            raise _refusal("did not answer in time", field) from late
        except (HttpError, OSError, ValueError) as failure:
            # No word on why: a caller must not learn what answers where.
            raise _refusal("could not be fetched", field) from failure

    async def fetch_page(self, url: str, limits: "PageLimits") -> "FetchedPage":
        """Return the page behind a URL; RunFailure for one that must not or cannot be fetched.

        The domains hold for every redirect too: else a page of an allowed one leads to any other.
        """
        # yarl is imported with the first address: most processes fetch nothing.
        from yarl import URL

        # Imported with the first page: most processes fetch none.
        from tollgate.tools.base import FetchedPage, RunFailure

        try:
            async with asyncio.timeout(limits.timeout_s):
                found = await self._follow(URL(url), limits.bytes_max, limits.domains)
                return FetchedPage(
                    url=found.url, content=found.content, claimed_type=found.claimed_type
                )
        except _Refused as refused:
            raise RunFailure(refused.fault, f"the address {refused}") from refused
        except TimeoutError as late:
            raise RunFailure("url_not_accessible", "the page did not come in time") from late
        except (HttpError, OSError, ValueError) as failure:
            raise RunFailure("url_not_accessible", "the page could not be fetched") from failure

    async def _follow(
        self, url: "URL", bytes_max: int, domains: DomainRules | None = None
    ) -> FetchedMedia:
        for _ in range(self._limits.redirects_max + 1):
            if domains is not None and not domains.admits(url.raw_host or ""):
                raise _Refused("leads to a domain that is not allowed", "url_not_allowed")
            fetched = await self._get(url, bytes_max)
            if isinstance(fetched, FetchedMedia):
                return fetched
            url = fetched
        raise _Refused("is redirected too often")

    async def _get(self, url: "URL", bytes_max: int) -> "FetchedMedia | URL":
        """Fetch one URL, and return what is there, or the URL to which it redirects."""
        text = str(url.with_fragment(None))
        connection = await _connect(text, await self._addresses(url))
        try:
            _, head = write_request(Request(method="GET", url=text, headers=_HEADERS))
            await connection.send(head)
            await connection.receive()
            reply = Reply(connection, Connection.abort)
            if reply.status in _REDIRECTS:
                return url.join(type(url)(reply.headers.get("location", "")))
            if reply.status != 200:
                raise _Refused("could not be fetched")
            if reply.headers.get("content-encoding", "identity").lower() != "identity":
                raise _Refused("answers in an encoding that was not requested")
            content = await reply.read_all(bytes_max)
        except ReplyTooLong as large:
            raise _Refused(f"has more than {bytes_max} bytes behind it") from large
        finally:
            connection.abort()
        claimed = reply.headers.get("content-type")
        return FetchedMedia(url=str(url), content=content, claimed_type=claimed)

    async def _addresses(self, url: "URL") -> Sequence[str]:
        """Return the addresses of a URL; RequestError unless all of them are public."""
        if (
            url.scheme not in _PORTS
            or not url.host
            or url.user is not None
            or is_disguised(url.host)
        ):
            raise _Refused("must be an http(s) URL with a plain host", "url_not_allowed")
        host = url.host
        found = (host,) if is_address(host) else await self._resolve(host, _port(url))
        if not found or not all(self._is_allowed(address) for address in found):
            raise _Refused("does not lead to a public address", "url_not_allowed")
        return found

    def _is_allowed(self, address: str) -> bool:
        return address in self._also_allowed or is_public(address)


async def _connect(url: str, addresses: Sequence[str]) -> Connection:
    """Return a connection to the first of the addresses, which were checked, that takes one."""
    origin, _ = parse_url(url)
    for address in addresses[:-1]:
        with suppress(CannotConnect):
            return await connect(origin, make_buffer(), address=address, timeout_s=_ADDRESS_S)
    return await connect(origin, make_buffer(), address=addresses[-1])


class _Refused(Exception):
    """Raised for a URL that is not fetched; its text ends a sentence that begins with the URL."""

    def __init__(self, what: str, fault: "RunFault" = "url_not_accessible") -> None:
        super().__init__(what)
        self.fault: RunFault = fault


def _port(url: "URL") -> int:
    return url.port or _PORTS[url.scheme]


def _refusal(what: str, field: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"A URL in {field} {what}.", param=field)
