"""One server of the chat app and the api app, which API Gateway joins in a deployment."""

from starlette.types import ASGIApp, Receive, Scope, Send

from tollgate.web.paths import STREAMING_PATHS, canonical_path


class LocalApp:
    """Sends paths of the streaming function to the chat app and everything else to the api app."""

    def __init__(self, chat: ASGIApp, api: ASGIApp) -> None:
        self._chat = chat
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        streamed = scope["type"] == "http" and canonical_path(scope["path"]) in STREAMING_PATHS
        await (self._chat if streamed else self._api)(scope, receive, send)
