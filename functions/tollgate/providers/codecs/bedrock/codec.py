"""The codec of Bedrock's Converse."""

from tollgate.providers.codecs.bedrock.decode import ConverseDecoder
from tollgate.providers.codecs.bedrock.encode import encode
from tollgate.providers.ports.base import Codec
from tollgate.providers.ports.wire_format import WireFormat
from tollgate.providers.shared.bedrock_errors import error_of_bedrock_reply


def make_codec(format_: WireFormat) -> Codec:
    """Return the codec for the row of its format."""
    return Codec(
        encode=lambda request, target: encode(request, target, format_),
        decoder=lambda target: ConverseDecoder(target.provider, signer=format_.signer_of(target)),
        error=error_of_bedrock_reply,
    )
