"""The codec of Gemini's generateContent format, on AI Studio and on Vertex."""

from tollgate.core.errors import UpstreamError
from tollgate.core.request import GenerationRequest
from tollgate.providers.base import Target, UpstreamRefused, WireRequest
from tollgate.providers.gemini import encode
from tollgate.providers.gemini.decode import GeminiDecoder
from tollgate.providers.gemini.errors import error_of_reply


class GeminiCodec:
    """Translates to and from streamGenerateContent."""

    def encode(self, request: GenerationRequest, target: Target) -> WireRequest:
        return encode.encode(request, target)

    def decoder(self, target: Target) -> GeminiDecoder:
        once = target.dialect.gemini.searches_billed_once
        return GeminiDecoder(target.provider, searches_billed_once=once)

    def error(self, refused: UpstreamRefused, target: Target) -> UpstreamError:
        return error_of_reply(refused, target.provider)
