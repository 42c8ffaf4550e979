"""An ASGI endpoint that counts the tokens of a prompt, in one client format.

Imported at the first request for a count.
"""

from functools import partial

from starlette.types import Receive, Scope
from typing_extensions import override

from tollgate.core.errors import GatewayError, InternalError
from tollgate.engine.replies.sink import ClientGone, send_error
from tollgate.engine.side_thread import LARGE_BYTES
from tollgate.engine.usage.token_counts import CountPace, TokenCount, count_tokens
from tollgate.ingress.format_rows import IngressFormat
from tollgate.routing.planning.presets import complete_request
from tollgate.web.generation.entrance import Entrance, FormatEndpoint
from tollgate.web.http.reply import AsgiReply
from tollgate.web.http.request_id import request_id_of


class CountEndpoint(FormatEndpoint):
    """Authenticates, parses and counts; nothing is held or recorded."""

    def __init__(self, format_: IngressFormat, entrance: Entrance) -> None:
        if format_.counting is None:
            raise ValueError(f"the format {format_.name} does not count tokens")
        super().__init__(format_, entrance)
        self._counting = format_.counting
        self._pace = CountPace(entrance.services.clock)

    @override
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
        entered = await self._entrance.enter(scope, receive, holds=False)
        try:
            stored = await self._entrance.parse_read(entered, self._format)
            if stored is None:
                parse = partial(self._counting.parse(), entered.body, entered.headers)
                request = await self._entrance.compute(entered, parse)
            else:
                request = stored.request
            if request.preset is not None:
                catalog = entered.gateway.planner.catalog
                complete = partial(complete_request, catalog, request)
                request = (await self._entrance.compute(entered, complete)).request
            return await count_tokens(
                entered.gateway,
                request,
                principal=entered.principal,
                reach=entered.reach,
                request_id=request_id,
                pace=self._pace,
                is_large=entered.is_large or request.size_bytes > LARGE_BYTES,
            )
        finally:
            self._entrance.leave(entered)

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
