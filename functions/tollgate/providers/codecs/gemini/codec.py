"""The codec of Gemini's generateContent."""

from tollgate.providers.codecs.gemini.decode import GeminiDecoder
from tollgate.providers.codecs.gemini.encode import encode
from tollgate.providers.codecs.gemini.errors import error_of_reply
from tollgate.providers.ports.base import Codec
from tollgate.providers.ports.wire_format import WireFormat


def make_codec(format_: WireFormat) -> Codec:
    """Return the codec for the row of its format."""
    return Codec(
        encode=lambda request, target: encode(request, target, format_),
        decoder=lambda target: GeminiDecoder(
            target.provider,
            signer=format_.signer_of(target),
            searches_billed_once=target.dialect.gemini.searches_billed_once,
        ),
        error=error_of_reply,
    )
