"""The codec of OpenAI's legacy completions."""

from tollgate.providers.base import Codec
from tollgate.providers.openai_completions.decode import CompletionDecoder
from tollgate.providers.openai_completions.encode import encode
from tollgate.providers.shared.openai_choices import ChoiceDemultiplexer
from tollgate.providers.shared.openai_errors import parse_openai_reply_error
from tollgate.providers.wire_format import WireFormat


def make_codec(format_: WireFormat) -> Codec:
    """Return the codec, by the row of its format."""
    return Codec(
        encode=lambda request, target: encode(request, target, format_),
        decoder=lambda target: CompletionDecoder(target.provider),
        error=parse_openai_reply_error,
        demultiplexer=lambda target, choices: ChoiceDemultiplexer(target.provider, choices),
    )
