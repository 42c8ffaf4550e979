"""A server on a loopback port whose requests one function answers, and the client of a proxy."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Final, Self

import aiohttp
from aiohttp import web

_WAITING_MAX: Final = 512


class LocalServer(ABC):
    """Serves while it is entered; `url` says where."""

    def __init__(self) -> None:
        self.url = ""
        self._runner = web.ServerRunner(web.Server(self.answer), shutdown_timeout=0.1)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=_WAITING_MAX).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()

    @abstractmethod
    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""


class LocalProxy(LocalServer):
    """A server with a client that sends requests on as they are, and waits for as long."""

    async def __aenter__(self) -> Self:
        self.client = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None),
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        )
        return await super().__aenter__()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await super().__aexit__(exc_type, exc, traceback)
        await self.client.close()
