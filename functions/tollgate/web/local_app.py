"""One server of the chat app and the api app, which API Gateway joins in a deployment."""

from starlette.types import ASGIApp, Receive, Scope, Send

from tollgate.core.files import LOCAL_UPLOADS
from tollgate.web.paths import STREAMING_PATHS, canonical_path


class LocalApp:
    """Sends paths of the streaming function to the chat app and everything else to the api app.

    `uploads` takes contents by signed addresses, where no bucket does.
    """

    def __init__(self, chat: ASGIApp, api: ASGIApp, uploads: ASGIApp | None = None) -> None:
        self._chat = chat
        self._api = api
        self._uploads = uploads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._uploads is not None and _is_upload(scope):
            await self._uploads(scope, receive, send)
            return
        streamed = scope["type"] == "http" and canonical_path(scope["path"]) in STREAMING_PATHS
        await (self._chat if streamed else self._api)(scope, receive, send)


def _is_upload(scope: Scope) -> bool:
    return scope["type"] == "http" and str(scope["path"]).startswith(LOCAL_UPLOADS)
