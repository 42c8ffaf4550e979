"""Turns a request for streamGenerateContent into a request that counts the tokens of the prompt.

https://ai.google.dev/api/tokens and the method `countTokens` of Vertex AI (2026-11-22).
"""

from typing import Final

from msgspec.structs import replace

from tollgate.providers.ports.base import Target, TokenCounter, WireRequest

# Vertex AI accepts the parts of the prompt, AI Studio the whole request.
_VERTEX_FIELDS: Final = frozenset({"contents", "generationConfig", "systemInstruction", "tools"})


def encode_count(wire: WireRequest, target: Target) -> WireRequest:
    """Return the request for `POST …/models/{model}:countTokens`."""
    path = f"{wire.path.partition(':')[0]}:countTokens"
    if target.project is not None:
        body = {name: value for name, value in wire.body.items() if name in _VERTEX_FIELDS}
    else:
        model = f"models/{target.upstream_model}"
        body = {"generateContentRequest": {"model": model, **wire.body}}
    return replace(wire, path=path, body=body, headers={"accept": "application/json"})


COUNTER: Final = TokenCounter(encode=encode_count, fields=("totalTokens",))
