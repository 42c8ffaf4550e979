"""The codec of Gemini's generateContent, and the requests that count the tokens of a prompt."""

from typing import Final

from msgspec.structs import replace

from tollgate.providers.codecs.gemini.decode import GeminiDecoder
from tollgate.providers.codecs.gemini.encode import encode
from tollgate.providers.codecs.gemini.errors import error_of_reply
from tollgate.providers.ports.base import Codec, Target, TokenCounter, WireRequest
from tollgate.providers.ports.wire_format import WireFormat

# Vertex AI counts only these fields; AI Studio accepts the whole request.
_VERTEX_FIELDS: Final = frozenset({"contents", "generationConfig", "systemInstruction", "tools"})


def encode_count(wire: WireRequest, target: Target) -> WireRequest:
    """Return the request for `POST …/models/{model}:countTokens`.

    https://ai.google.dev/api/tokens and the method `countTokens` of Vertex AI (2026-11-22).
    """
    path = f"{wire.path.partition(':')[0]}:countTokens"
    if target.project is not None:
        body = {name: value for name, value in wire.body.items() if name in _VERTEX_FIELDS}
    else:
        model = f"models/{target.upstream_model}"
        body = {"generateContentRequest": {"model": model, **wire.body}}
    return replace(wire, path=path, body=body, headers={"accept": "application/json"})


COUNTER: Final = TokenCounter(encode=encode_count, fields=("totalTokens",))


def make_codec(format_: WireFormat) -> Codec:
    return Codec(
        encode=lambda request, target: encode(request, target, format_),
        decoder=lambda target: GeminiDecoder(
            target.provider,
            signer=format_.signer_of(target),
            searches_billed_once=target.dialect.gemini.searches_billed_once,
        ),
        error=error_of_reply,
    )
