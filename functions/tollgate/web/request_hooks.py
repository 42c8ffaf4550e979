"""What is done before a request is served, and after it has been answered."""

from collections.abc import Awaitable, Callable, Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

Hook = Callable[[], Awaitable[None]]


class RequestHooks:
    """Does chores of its own around each request.

    Those after it begin when its last byte has left, so that no client waits for them.
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
        for chore in self._before:
            await chore()
        try:
            await self._app(scope, receive, send)
        finally:
            for chore in self._after:
                await chore()
