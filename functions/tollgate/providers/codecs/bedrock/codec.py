"""The codec of Bedrock's Converse, and the requests that count the tokens of a prompt."""

from typing import Final
from urllib.parse import quote

from msgspec.structs import replace

from tollgate.providers.codecs.bedrock.decode import ConverseDecoder
from tollgate.providers.codecs.bedrock.encode import encode
from tollgate.providers.ports.base import Codec, Target, TokenCounter, WireRequest
from tollgate.providers.ports.wire_format import WireFormat
from tollgate.providers.shared.bedrock import error_of_bedrock_reply
from tollgate.providers.shared.bedrock_models import base_model

_COUNTED: Final = frozenset({"additionalModelRequestFields", "messages", "system", "toolConfig"})


def encode_count(wire: WireRequest, target: Target) -> WireRequest | None:
    """Return the counting request; None for an inference profile of an unknown model.

    https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_CountTokens.html
    (2026-11-22)
    """
    model = base_model(target.upstream_model)
    if model is None:
        return None
    counted = {name: value for name, value in wire.body.items() if name in _COUNTED}
    return replace(
        wire,
        path=f"/model/{quote(model, safe='')}/count-tokens",
        body={"input": {"converse": counted}},
        headers={"accept": "application/json"},
    )


COUNTER: Final = TokenCounter(encode=encode_count, fields=("inputTokens",))


def make_codec(format_: WireFormat) -> Codec:
    return Codec(
        encode=lambda request, target: encode(request, target, format_),
        decoder=lambda target: ConverseDecoder(target.provider, signer=format_.signer_of(target)),
        error=error_of_bedrock_reply,
    )
