"""The codec of OpenAI's Responses."""

from tollgate.providers.codecs.openai_responses.decode import ResponsesDecoder
from tollgate.providers.codecs.openai_responses.encode import encode
from tollgate.providers.ports.base import Codec
from tollgate.providers.ports.wire_format import WireFormat
from tollgate.providers.shared.openai_errors import parse_openai_reply_error


def make_codec(format_: WireFormat) -> Codec:
    """Return the codec for the row of its format."""
    return Codec(
        encode=lambda request, target: encode(request, target, format_),
        decoder=lambda target: ResponsesDecoder(
            target.provider,
            signer=format_.signer_of(target),
            searches=target.native_search is not None,
        ),
        error=parse_openai_reply_error,
        has_text_tools=True,
    )
