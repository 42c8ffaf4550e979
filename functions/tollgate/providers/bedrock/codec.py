"""The codec of Bedrock's Converse."""

from tollgate.providers.base import Codec
from tollgate.providers.bedrock.decode import ConverseDecoder
from tollgate.providers.bedrock.encode import encode
from tollgate.providers.shared.bedrock_errors import error_of_bedrock_reply
from tollgate.providers.wire_format import WireFormat


def make_codec(format_: WireFormat) -> Codec:
    """Return the codec, by the row of its format."""
    return Codec(
        encode=lambda request, target: encode(request, target, format_),
        decoder=lambda target: ConverseDecoder(target.provider, signer=format_.signer_of(target)),
        error=error_of_bedrock_reply,
    )
