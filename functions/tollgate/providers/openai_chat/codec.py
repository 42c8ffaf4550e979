"""The codec of OpenAI's chat completions format: any OpenAI-like provider is a row on it."""

from tollgate.core.errors import UpstreamError
from tollgate.core.request import GenerationRequest
from tollgate.providers.base import Target, UpstreamRefused, WireRequest
from tollgate.providers.openai_chat import encode
from tollgate.providers.openai_chat.choices import ChoiceDemultiplexer
from tollgate.providers.openai_chat.decode import ChatDecoder
from tollgate.providers.shared.openai_errors import error_of_reply


class OpenAiChatCodec:
    """Translates to and from chat completions, in the dialect that the target states."""

    def encode(self, request: GenerationRequest, target: Target) -> WireRequest:
        return encode.encode(request, target)

    def decoder(self, target: Target) -> ChatDecoder:
        return ChatDecoder(target.provider)

    def demultiplexer(self, target: Target, choices: int) -> ChoiceDemultiplexer:
        """Tells the choices apart where the dialect has `native_choices`; each has a decoder."""
        return ChoiceDemultiplexer(target.provider, choices)

    def error(self, refused: UpstreamRefused, target: Target) -> UpstreamError:
        return error_of_reply(refused, target.provider)
