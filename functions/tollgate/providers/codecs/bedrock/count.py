"""Turns a request for ConverseStream into a request that counts the tokens of the prompt.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_CountTokens.html (2026-11-22)
"""

from typing import Final
from urllib.parse import quote

from msgspec.structs import replace

from tollgate.providers.ports.base import Target, TokenCounter, WireRequest
from tollgate.providers.shared.bedrock_models import base_model

_COUNTED: Final = frozenset({"additionalModelRequestFields", "messages", "system", "toolConfig"})


def encode_count(wire: WireRequest, target: Target) -> WireRequest | None:
    """Return the counting request; None for an inference profile whose model is unknown."""
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
