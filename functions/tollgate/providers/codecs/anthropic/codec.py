"""The codec of Anthropic's Messages."""

from tollgate.providers.codecs.anthropic.decode import MessagesDecoder
from tollgate.providers.codecs.anthropic.encode import encode
from tollgate.providers.codecs.anthropic.errors import error_of_reply
from tollgate.providers.ports.base import Codec
from tollgate.providers.ports.wire_format import WireFormat


def make_codec(format_: WireFormat) -> Codec:
    """Return the codec for the row of its format."""
    return Codec(
        encode=lambda request, target: encode(request, target, format_),
        decoder=lambda target: MessagesDecoder(target.provider, signer=format_.signer_of(target)),
        error=error_of_reply,
    )
