"""Middleware that runs hooks before and after each request."""

from collections.abc import Awaitable, Callable, Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

Hook = Callable[[], Awaitable[None]]


class RequestHooks:
    """Runs hooks around each request.

    The `after` hooks begin when the last byte has been sent, so that no client waits for them.
    """

    def __init__(
        self, app: ASGIApp, *, before: Sequence[Hook] = (), after: Sequence[Hook] = ()
    ) -> None:
        self._app = app
        self._before = before
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        for hook in self._before:
            await hook()
        try:
            await self._app(scope, receive, send)
        finally:
            for hook in self._after:
                await hook()
