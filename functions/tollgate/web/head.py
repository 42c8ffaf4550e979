"""HEAD, answered as GET is but without the body: routes are declared for GET alone."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadAsGet:
    """Lets HEAD reach the routes of GET."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        await self._app({**scope, "method": "GET"}, receive, without_body)
