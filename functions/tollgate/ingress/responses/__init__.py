"""OpenAI's Responses as a client format."""

from collections.abc import Mapping
from decimal import Decimal

from tollgate.core.errors import GatewayError
from tollgate.core.ids import IdSource
from tollgate.ingress.base import (
    KEEP_ALIVE_COMMENT,
    NO_HEADERS,
    ErrorReply,
    ParsedCall,
    Routed,
    ServedBy,
)
from tollgate.ingress.errors import openai_limit_headers
from tollgate.ingress.responses.errors import responses_reply
from tollgate.ingress.responses.parse import parse_response_request
from tollgate.ingress.responses.render import ResponseRenderer


class Responses:
    """The format of POST /v1/responses."""

    # Codex's idle timer ignores comments, so a quiet stream gets events. Before the first event of
    # the answer, a comment is sent, because OpenAI's SDKs refuse any other first event.
    keep_alive = b'event: keepalive\ndata: {"type":"keepalive"}\n\n'
    early_keep_alive = KEEP_ALIVE_COMMENT
    limit_headers = staticmethod(openai_limit_headers)

    def __init__(self, ids: IdSource) -> None:
        del ids

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedCall:
        """Parse a request; raise RequestError with the field at fault."""
        return parse_response_request(body, headers)

    def renderer(
        self, call: ParsedCall, served: ServedBy, *, credits_per_usd: Decimal
    ) -> ResponseRenderer:
        """Return a new renderer for one reply."""
        return ResponseRenderer(call, served, credits_per_usd=credits_per_usd)

    def error(
        self, error: GatewayError, request_id: str, routed: Routed | None = None
    ) -> ErrorReply:
        """Render an error in OpenAI's envelope."""
        return responses_reply(error, request_id, routed)
