"""OpenAI's legacy completions as a client format."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

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
from tollgate.ingress.completions.parse import parse_completion
from tollgate.ingress.completions.render import CompletionRenderer
from tollgate.ingress.errors import openai_limit_headers, openai_reply

_FIELDS: Final = {"messages": "prompt"}


class Completions:
    """The format of POST /v1/completions; `ids` creates episode ids for callers without one."""

    def __init__(self, ids: IdSource) -> None:
        self._ids = ids

    keep_alive = early_keep_alive = KEEP_ALIVE_COMMENT
    limit_headers = staticmethod(openai_limit_headers)

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedCall:
        """Parse a request; raise RequestError with the field at fault. No header is read."""
        return parse_completion(body)

    def renderer(
        self, call: ParsedCall, served: ServedBy, *, credits_per_usd: Decimal
    ) -> CompletionRenderer:
        """Return a new renderer for one reply."""
        return CompletionRenderer(
            call,
            served,
            episode_id=call.episode_id or self._ids.new_uuid7(),
            credits_per_usd=credits_per_usd,
        )

    def error(
        self, error: GatewayError, request_id: str, routed: Routed | None = None
    ) -> ErrorReply:
        """Render an error in OpenAI's envelope."""
        return openai_reply(error, request_id, routed, _FIELDS)
