"""An ASGI endpoint that counts the tokens of a prompt, in one client format.

Imported with the first request that is counted.
"""

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from tollgate.core import tracing
from tollgate.core.errors import GatewayError, InternalError, MethodNotAllowed
from tollgate.core.principal import Principal
from tollgate.core.request import GenerationRequest
from tollgate.engine.content_log import ContentLog
from tollgate.engine.sink import ClientGone, send_error
from tollgate.engine.token_counts import CountPace, TokenCount, count_tokens
from tollgate.ingress.base import Ingress
from tollgate.ingress.formats import IngressFormat
from tollgate.web.access import METERED
from tollgate.web.auth import authenticate
from tollgate.web.cors import WebLimits
from tollgate.web.paths import METERED_METHODS
from tollgate.web.reply import AsgiReply, read_body
from tollgate.web.request_id import request_id_of
from tollgate.web.request_services import Gateways, RequestServices


class CountEndpoint:
    """Authenticates, parses and counts; holds and records nothing."""

    def __init__(
        self,
        format_: IngressFormat,
        services: RequestServices,
        gateways: Gateways,
        limits: WebLimits,
        *,
        responses: ContentLog | None = None,
    ) -> None:
        if format_.counting is None:
            raise ValueError(f"the format {format_.name} counts no tokens")
        self._format = format_
        self._counting = format_.counting
        self._services = services
        self._gateways = gateways
        self._limits = limits
        self._responses = responses
        self._pace = CountPace(services.clock)

    @property
    def _ingress(self) -> Ingress:
        return self._services.ingresses[self._format.name]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = AsgiReply(send, id_header=self._format.id_header)
        try:
            await self._serve(scope, receive, reply)
        except ClientGone:
            return
        finally:
            await self._gateways.finish_loading()

    async def _serve(self, scope: Scope, receive: Receive, reply: AsgiReply) -> None:
        request_id = request_id_of(scope)
        named = {"x-request-id": request_id}
        try:
            counted = await self._count(scope, receive, request_id)
        except ClientGone:
            raise
        except GatewayError as refusal:
            await send_error(reply, self._ingress, refusal, named)
        except Exception as unexpected_error:
            self._services.journal.unexpected_error(unexpected_error, request_id)
            await send_error(reply, self._ingress, InternalError(), named)
        else:
            await self._send(reply, counted, named)

    async def _count(self, scope: Scope, receive: Receive, request_id: str) -> TokenCount:
        headers = Headers(scope=scope)
        tracing.begin(headers.get("traceparent"), self._services.ids)
        if scope["method"] != "POST":
            raise MethodNotAllowed(
                f"{scope['method']} is not served here; use POST.", METERED_METHODS
            )
        principal = await authenticate(self._services.keys, headers, METERED.roles)
        gateway = await self._gateways.for_key(principal.key_id)
        body = await read_body(receive, self._limits.body_bytes_max)
        return await count_tokens(
            gateway,
            await self._parse(body, headers, principal),
            principal=principal,
            request_id=request_id,
            pace=self._pace,
        )

    async def _parse(
        self, body: bytes, headers: Headers, principal: Principal
    ) -> GenerationRequest:
        days = principal.response_days
        if self._responses is None or days is None:
            return self._counting.parse(body, headers)
        # Imported with its first request, for counts of other formats too are served here.
        from tollgate.web.response_storage import parse_with_turns

        parsed = await parse_with_turns(
            self._responses, body, headers, workspace_id=principal.workspace_id, days=days
        )
        return parsed.request

    async def _send(self, reply: AsgiReply, counted: TokenCount, named: dict[str, str]) -> None:
        body = self._counting.render(counted.tokens)
        headers = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            "x-tollgate-token-count": "exact" if counted.is_exact else "estimate",
            **named,
        }
        if counted.failure is not None:
            headers["x-tollgate-token-count-failure"] = counted.failure.value
        await reply.start(200, headers)
        await reply.end(body)
