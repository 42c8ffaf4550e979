"""What is to be fresh before a request is served."""

from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp, Receive, Scope, Send


class Renewed:
    """Has something renewed before each request; it returns at once while nothing is due."""

    def __init__(self, app: ASGIApp, renew: Callable[[], Awaitable[None]]) -> None:
        self._app = app
        self._renew = renew

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._renew()
        await self._app(scope, receive, send)
