"""The codec of Anthropic's Messages API: native, on Vertex AI, and on Bedrock's InvokeModel."""

from tollgate.core.errors import UpstreamError
from tollgate.core.request import GenerationRequest
from tollgate.providers.anthropic import encode
from tollgate.providers.anthropic.decode import MessagesDecoder
from tollgate.providers.anthropic.errors import error_of_reply
from tollgate.providers.base import Target, UpstreamRefused, WireRequest


class AnthropicCodec:
    """Translates to and from streamed messages, as the target's carrier wants them."""

    def encode(self, request: GenerationRequest, target: Target) -> WireRequest:
        return encode.encode(request, target)

    def decoder(self, target: Target) -> MessagesDecoder:
        return MessagesDecoder(target.provider)

    def error(self, refused: UpstreamRefused, target: Target) -> UpstreamError:
        return error_of_reply(refused, target.provider)
