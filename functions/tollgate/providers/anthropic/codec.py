"""The codec of Anthropic's Messages."""

from tollgate.providers.anthropic.decode import MessagesDecoder
from tollgate.providers.anthropic.encode import encode
from tollgate.providers.anthropic.errors import error_of_reply
from tollgate.providers.base import Codec
from tollgate.providers.wire_format import WireFormat


def make_codec(format_: WireFormat) -> Codec:
    """Return the codec, by the row of its format."""
    return Codec(
        encode=lambda request, target: encode(request, target, format_),
        decoder=lambda target: MessagesDecoder(target.provider, signer=format_.signer_of(target)),
        error=error_of_reply,
    )
