"""The client format of OpenAI's Responses API."""

from decimal import Decimal

from typing_extensions import override

from tollgate.core.errors import GatewayError
from tollgate.ingress.base import ErrorReply, ParsedCall, Renderer, Routed, ServedBy
from tollgate.ingress.responses.errors import responses_reply
from tollgate.ingress.responses.parse import parse_response_request
from tollgate.ingress.responses.render import ResponseRenderer, unknown_of_response
from tollgate.ingress.shared.openai_format import OpenAIFormat
from tollgate.ingress.shared.unknown_frames import UnknownFrames


class Responses(OpenAIFormat):
    """The format of POST /v1/responses."""

    # An idle stream gets events, because Codex's idle timer ignores comments. Before the first
    # event of the answer a comment is sent, because OpenAI's SDKs refuse other first events.
    keep_alive = b'event: keepalive\ndata: {"type":"keepalive"}\n\n'

    parse = staticmethod(parse_response_request)

    def renderer(self, call: ParsedCall, served: ServedBy, *, credits_per_usd: Decimal) -> Renderer:
        renderer = ResponseRenderer(call, served, credits_per_usd=credits_per_usd)
        return UnknownFrames(renderer, "openai_responses", unknown_of_response, renderer.pass_on)

    @override
    def error(
        self, error: GatewayError, request_id: str, routed: Routed | None = None
    ) -> ErrorReply:
        return responses_reply(error, request_id, routed)
