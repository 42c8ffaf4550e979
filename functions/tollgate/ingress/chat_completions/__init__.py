"""The client format of OpenAI's chat completions API."""

from collections.abc import Mapping
from decimal import Decimal

from tollgate.ingress.base import NO_HEADERS, ParsedCall, ServedBy
from tollgate.ingress.chat_completions.parse import parse
from tollgate.ingress.chat_completions.render import ChatRenderer, unknown_of_completion
from tollgate.ingress.shared.openai_format import OpenAIFormat
from tollgate.ingress.shared.unknown_frames import UnknownFrames


class ChatCompletions(OpenAIFormat):
    """The format of POST /v1/chat/completions; a missing episode id is created."""

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedCall:
        return parse(body)

    def renderer(
        self, call: ParsedCall, served: ServedBy, *, credits_per_usd: Decimal
    ) -> UnknownFrames:
        renderer = ChatRenderer(
            call,
            served,
            episode_id=call.episode_id or self._ids.new_uuid7(),
            credits_per_usd=credits_per_usd,
        )
        return UnknownFrames(renderer, "openai_chat", unknown_of_completion)
