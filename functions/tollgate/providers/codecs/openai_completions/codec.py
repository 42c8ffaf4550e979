"""The codec of OpenAI's legacy completions."""

from tollgate.providers.codecs.openai_completions.decode import CompletionDecoder
from tollgate.providers.codecs.openai_completions.encode import encode
from tollgate.providers.ports.base import Codec
from tollgate.providers.ports.wire_format import WireFormat
from tollgate.providers.shared.openai_choices import ChoiceDemultiplexer
from tollgate.providers.shared.openai_errors import parse_openai_reply_error


def make_codec(format_: WireFormat) -> Codec:
    return Codec(
        encode=lambda request, target: encode(request, target, format_),
        decoder=lambda target: CompletionDecoder(target.provider),
        error=parse_openai_reply_error,
        demultiplexer=lambda target, choices: ChoiceDemultiplexer(target.provider, choices),
    )
