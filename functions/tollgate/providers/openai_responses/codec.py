"""The codec of OpenAI's Responses format, for models that refuse tools on chat completions."""

from tollgate.core.errors import UpstreamError
from tollgate.core.request import GenerationRequest
from tollgate.providers.base import Target, UpstreamRefused, WireRequest
from tollgate.providers.openai_responses import encode
from tollgate.providers.openai_responses.decode import ResponsesDecoder
from tollgate.providers.shared.openai_errors import error_of_reply


class OpenAiResponsesCodec:
    """Translates to and from Responses; nothing is kept at the provider."""

    def encode(self, request: GenerationRequest, target: Target) -> WireRequest:
        return encode.encode(request, target)

    def decoder(self, target: Target) -> ResponsesDecoder:
        return ResponsesDecoder(target.provider)

    def error(self, refused: UpstreamRefused, target: Target) -> UpstreamError:
        return error_of_reply(refused, target.provider)
