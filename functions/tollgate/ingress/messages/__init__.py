"""The client format of Anthropic's Messages API."""

from decimal import Decimal

from tollgate.core.errors import GatewayError
from tollgate.core.ids import IdSource
from tollgate.ingress.base import ErrorReply, ParsedCall, Routed, ServedBy
from tollgate.ingress.messages.compaction import WIRE_FORMAT
from tollgate.ingress.messages.errors import anthropic_limit_headers, anthropic_reply
from tollgate.ingress.messages.parse import parse_request
from tollgate.ingress.messages.render import MessageRenderer, unknown_of_message
from tollgate.ingress.shared.unknown_frames import UnknownFrames


class Messages:
    """The format of POST /v1/messages."""

    keep_alive = early_keep_alive = b'event: ping\ndata: {"type":"ping"}\n\n'
    limit_headers = staticmethod(anthropic_limit_headers)
    parse = staticmethod(parse_request)

    def __init__(self, ids: IdSource) -> None:
        del ids

    def renderer(
        self, call: ParsedCall, served: ServedBy, *, credits_per_usd: Decimal
    ) -> UnknownFrames:
        renderer = MessageRenderer(call, served, credits_per_usd=credits_per_usd)
        return UnknownFrames(renderer, WIRE_FORMAT, unknown_of_message)

    def error(
        self, error: GatewayError, request_id: str, routed: Routed | None = None
    ) -> ErrorReply:
        return anthropic_reply(error, request_id, routed)
