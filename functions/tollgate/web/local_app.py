"""One server for the chat app and the api app, which API Gateway joins in a deployment."""

from starlette.types import ASGIApp, Receive, Scope, Send

from tollgate.core.files.stored import LOCAL_UPLOADS
from tollgate.web.http.paths import STREAMING_PATHS, canonical_path
from tollgate.web.sign_in.sign_in_paths import LOGIN_PATHS


class LocalApp:
    """Sends paths of the streaming function to the chat app, and all others to the api app.

    `uploads` receives contents at signed addresses if there is no bucket. `login` is the sign-in
    app.
    """

    def __init__(
        self,
        chat: ASGIApp,
        api: ASGIApp,
        uploads: ASGIApp | None = None,
        login: ASGIApp | None = None,
    ) -> None:
        self._chat = chat
        self._api = api
        self._login = login
        self._uploads = uploads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._uploads is not None and _is_upload(scope):
            await self._uploads(scope, receive, send)
            return
        await self._app_of(scope)(scope, receive, send)

    def _app_of(self, scope: Scope) -> ASGIApp:
        path = canonical_path(scope["path"]) if scope["type"] == "http" else None
        if path in STREAMING_PATHS:
            return self._chat
        return self._login if self._login is not None and path in LOGIN_PATHS else self._api


def _is_upload(scope: Scope) -> bool:
    return scope["type"] == "http" and str(scope["path"]).startswith(LOCAL_UPLOADS)
