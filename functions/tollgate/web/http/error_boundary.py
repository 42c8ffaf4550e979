"""The error envelope for every failure of an API route."""

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tollgate.core.errors import GatewayError, InternalError
from tollgate.core.files.media_types import is_form
from tollgate.engine.gateway import Journal
from tollgate.engine.replies.sink import ClientGone
from tollgate.ingress.errors import openai_reply
from tollgate.web.http.request_id import request_id_of


class ErrorBoundary:
    """Replies to errors that no route has handled; never reads a body."""

    def __init__(self, app: ASGIApp, *, journal: Journal) -> None:
        self._app = app
        self._journal = journal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(_as_json(scope), receive, send_watched)
        except ClientGone:
            return
        except GatewayError as refusal:
            await error_response(refusal, scope)(scope, receive, send)
        except Exception as unexpected_error:
            self._journal.unexpected_error(unexpected_error, request_id_of(scope))
            if started:
                raise
            await error_response(InternalError(), scope)(scope, receive, send)


def error_response(error: GatewayError, scope: Scope) -> Response:
    """Return the reply to a failed request, in the envelope of the API routes."""
    rendered = openai_reply(error, request_id_of(scope))
    return Response(rendered.body, rendered.status, dict(rendered.headers))


def _as_json(scope: Scope) -> Scope:
    """Return the scope with `content-type: application/json`, unless the client sent a multipart
    form.

    Explanations and file uploads accept multipart forms, whose header contains the boundary. Every
    other body is JSON, even though `curl -d` declares a form and some clients declare nothing.
    Ignoring the type does not expose the API to cross-site request forgery, because a key is sent
    in a header and never as a cookie.
    """
    if is_form(dict(scope["headers"]).get(b"content-type", b"").decode("latin-1")):
        return scope
    headers = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
    return {**scope, "headers": [*headers, (b"content-type", b"application/json")]}
