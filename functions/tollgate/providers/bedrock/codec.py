"""The codec of Bedrock's Converse format, whatever model family is behind it."""

from tollgate.core.errors import UpstreamError
from tollgate.core.request import GenerationRequest
from tollgate.providers.base import Target, UpstreamRefused, WireRequest
from tollgate.providers.bedrock import encode
from tollgate.providers.bedrock.decode import ConverseDecoder
from tollgate.providers.bedrock.errors import error_of_reply


class BedrockCodec:
    """Translates to and from ConverseStream."""

    def encode(self, request: GenerationRequest, target: Target) -> WireRequest:
        return encode.encode(request, target)

    def decoder(self, target: Target) -> ConverseDecoder:
        return ConverseDecoder(target.provider)

    def error(self, refused: UpstreamRefused, target: Target) -> UpstreamError:
        return error_of_reply(refused, target.provider)
