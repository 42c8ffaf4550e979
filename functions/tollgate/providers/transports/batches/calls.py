"""Calls to a provider for its batches and their files."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Final, Literal, TypeVar
from urllib.parse import urlencode

from msgspec import MsgspecError, Struct, json

from tollgate.core.errors import ErrorCode, MissingCredentials, UpstreamError
from tollgate.http1.errors import HttpError
from tollgate.providers.ports.base import FormPart, ProviderRow, UpstreamRefused
from tollgate.providers.ports.provider_batches import NotAccepted
from tollgate.providers.transports.authorization import Authorization, KeyHeader, ProviderServices
from tollgate.providers.transports.http_pool import HttpCall, HttpPool, network_error

_CONNECT_S: Final = 10.0
_CALL_S: Final = 120.0
_REPLY_BYTES_MAX: Final = 8 * 1024 * 1024
# An answer may contain pictures.
_LINE_BYTES_MAX: Final = 32 * 1024 * 1024
_NO_HEADERS: Final[Mapping[str, str]] = {}
# The maximum number of pages of a list, so that a provider whose pages lead in a circle cannot
# occupy a worker.
PAGES_MAX: Final = 200
_BAD_REQUEST: Final = 400
_SERVER_ERROR: Final = 500


class _Ignored(Struct):
    """A reply whose content is ignored."""


_Reply = TypeVar("_Reply", bound=Struct)


class ProviderCalls:
    """Sends the calls of one row."""

    def __init__(self, row: ProviderRow, pool: HttpPool, authorization: Authorization) -> None:
        self._row = row
        self._pool = pool
        self._authorization = authorization

    async def call(
        self,
        reply: type[_Reply],
        method: Literal["GET", "POST"],
        path: str,
        *,
        body: bytes = b"",
        form: tuple[FormPart, ...] = (),
        headers: Mapping[str, str] = _NO_HEADERS,
        bytes_max: int = _REPLY_BYTES_MAX,
    ) -> _Reply:
        """Send a call and return its reply; raise UpstreamRefused or UpstreamError."""
        content = await self.read(
            method, path, body=body, form=form, headers=headers, bytes_max=bytes_max
        )
        try:
            # AWS answers some calls without a body.
            return json.decode(content or b"{}", type=reply)
        except MsgspecError as invalid:
            raise self.malformed(path) from invalid

    async def read(
        self,
        method: Literal["GET", "POST", "DELETE"],
        path: str,
        *,
        body: bytes = b"",
        form: tuple[FormPart, ...] = (),
        headers: Mapping[str, str] = _NO_HEADERS,
        bytes_max: int = _REPLY_BYTES_MAX,
    ) -> bytes:
        """Send a call and return the unparsed reply; raise UpstreamRefused or UpstreamError."""
        call = await self._make(method, path, body=body, form=form, headers=headers)
        try:
            async with asyncio.timeout(_CALL_S), self._pool.send(call) as answer:
                return await answer.read_all(bytes_max)
        except HttpError as failure:
            raise network_error(self._row.slug, failure) from failure
        except TimeoutError as late:
            raise self._late() from late

    async def get(
        self,
        reply: type[_Reply],
        path: str,
        headers: Mapping[str, str] = _NO_HEADERS,
        *,
        bytes_max: int = _REPLY_BYTES_MAX,
    ) -> _Reply:
        """Return the reply to a read; raise UpstreamError for any failure."""
        try:
            return await self.call(reply, "GET", path, headers=headers, bytes_max=bytes_max)
        except UpstreamRefused as refused:
            raise self.as_failure(refused) from refused

    async def pages(
        self,
        reply: type[_Reply],
        path: str,
        query: Mapping[str, object],
        next_of: Callable[[_Reply], Mapping[str, object] | None],
        *,
        headers: Mapping[str, str] = _NO_HEADERS,
        bytes_max: int = _REPLY_BYTES_MAX,
    ) -> AsyncGenerator[_Reply, None]:
        """Yield the pages of a list; raise UpstreamError on failure, or after too many pages.

        `next_of` returns the fields of the query for the page after a page; None after the last.
        """
        for _ in range(PAGES_MAX):
            page = await self.get(reply, f"{path}?{urlencode(query)}", headers, bytes_max=bytes_max)
            yield page
            following = next_of(page)
            if following is None:
                return
            query = {**query, **following}
        raise self.malformed(path)

    async def create(
        self,
        reply: type[_Reply],
        path: str,
        body: bytes,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> _Reply:
        """Create a batch; raise NotAccepted for a refusal, UpstreamError for another failure."""
        try:
            return await self.call(reply, "POST", path, body=body, headers=headers)
        except MissingCredentials as missing:
            raise NotAccepted from missing
        except UpstreamRefused as refused:
            if refused.status < _SERVER_ERROR:
                raise NotAccepted from refused
            raise self.as_failure(refused) from refused

    async def ask_for_path(
        self, path: str, header: str, body: bytes, headers: Mapping[str, str]
    ) -> str:
        """Send a call and return the path of the URL in a header of its reply.

        The URL must be below the row's address, because calls carry the row's key.
        """
        call = await self._make("POST", path, body=body, headers=headers)
        try:
            async with asyncio.timeout(_CALL_S), self._pool.send(call) as answer:
                url = answer.headers.get(header, "")
        except TimeoutError as late:
            raise self._late() from late
        base = f"{self._row.base_url}"
        if not url.startswith(f"{base}/"):
            raise self.malformed(path)
        return url[len(base) :]

    async def cancel(self, path: str, headers: Mapping[str, str] = _NO_HEADERS) -> None:
        """Cancel a batch; a refusal means that the batch has ended already."""
        try:
            await self.call(_Ignored, "POST", path, headers=headers)
        except UpstreamRefused as refused:
            if not _BAD_REQUEST <= refused.status < _SERVER_ERROR:
                raise self.as_failure(refused) from refused

    async def read_lines(
        self, path: str, headers: Mapping[str, str] = _NO_HEADERS
    ) -> AsyncGenerator[bytes, None]:
        """Yield the lines of a file as they arrive; raise UpstreamRefused or UpstreamError."""
        rest = b""
        async with aclosing(self._read(path, headers)) as parts:
            async for part in parts:
                *lines, rest = (rest + part).split(b"\n")
                for line in filter(bytes.strip, lines):
                    yield line
                if len(rest) > _LINE_BYTES_MAX:
                    raise self.malformed(path)
        if rest.strip():
            yield rest

    def malformed(self, path: str) -> UpstreamError:
        """Return the error for a reply that cannot be read."""
        return UpstreamError(
            ErrorCode.PROVIDER_UNAVAILABLE,
            f"The provider {self._row.slug} answered {path} with something that cannot be read.",
        )

    def as_failure(self, refused: UpstreamRefused) -> UpstreamError:
        """Return the error for a call that the provider has refused."""
        return UpstreamError(
            ErrorCode.PROVIDER_UNAVAILABLE,
            f"The provider {self._row.slug} refused a call for a batch or a background response.",
            status=refused.status,
        )

    def _late(self) -> UpstreamError:
        message = f"The provider {self._row.slug} did not answer in time."
        return UpstreamError(ErrorCode.PROVIDER_TIMEOUT, message)

    async def _read(self, path: str, headers: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        call = await self._make("GET", path, headers=headers)
        try:
            async with self._pool.send(call) as answer:
                while True:
                    async with asyncio.timeout(_CALL_S):
                        part = await answer.read()
                    if not part:
                        return
                    yield part
        except HttpError as failure:
            raise network_error(self._row.slug, failure) from failure
        except TimeoutError as late:
            message = f"The provider {self._row.slug} was silent for {_CALL_S:g} s."
            raise UpstreamError(ErrorCode.PROVIDER_TIMEOUT, message) from late

    async def _make(
        self,
        method: Literal["GET", "POST", "DELETE"],
        path: str,
        *,
        body: bytes = b"",
        form: tuple[FormPart, ...] = (),
        headers: Mapping[str, str],
    ) -> HttpCall:
        url = f"{self._row.base_url}{path}"
        given = {**headers, "accept": "*/*"}
        if body:
            given.setdefault("content-type", "application/json")
        return HttpCall(
            provider=self._row.slug,
            url=url,
            headers=await self._authorization.authorize(url, given, body, method=method),
            body=body,
            connect_s=_CONNECT_S,
            method=method,
            form=form,
        )


def make_calls(row: ProviderRow, services: ProviderServices) -> ProviderCalls:
    """Return the calls of a row, with the row's key."""
    return ProviderCalls(row, services.pool, KeyHeader(row, services.secrets))
