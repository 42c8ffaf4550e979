"""The codec of chat completions."""

from tollgate.providers.codecs.openai_chat.decode import ChatDecoder
from tollgate.providers.codecs.openai_chat.encode import encode
from tollgate.providers.ports.base import Codec
from tollgate.providers.ports.wire_format import WireFormat
from tollgate.providers.shared.openai_choices import ChoiceDemultiplexer
from tollgate.providers.shared.openai_errors import parse_openai_reply_error


def make_codec(_: WireFormat) -> Codec:
    """Return the codec, which does not depend on the entry of its format."""
    return Codec(
        encode=encode,
        decoder=lambda target: ChatDecoder(
            target.provider,
            signer=target.dialect.known_signer,
            passes_unknown=target.dialect.unknown_fields,
        ),
        error=parse_openai_reply_error,
        demultiplexer=lambda target, choices: ChoiceDemultiplexer(target.provider, choices),
    )
