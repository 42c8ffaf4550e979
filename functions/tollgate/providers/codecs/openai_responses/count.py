"""Turns a request for an answer into a request that counts the tokens of the prompt.

https://developers.openai.com/api/reference/resources/responses/subresources/input_tokens
(2026-11-22)
"""

from typing import Final

from msgspec.structs import replace

from tollgate.providers.ports.base import Target, TokenCounter, WireRequest

_COUNTED: Final = frozenset(
    {
        "input",
        "instructions",
        "model",
        "parallel_tool_calls",
        "reasoning",
        "text",
        "tool_choice",
        "tools",
        "truncation",
    }
)


def encode_count(wire: WireRequest, target: Target) -> WireRequest:
    """Return the request for `POST …/responses/input_tokens`."""
    path, _, query = wire.path.partition("?")
    return replace(
        wire,
        path=f"{path}/input_tokens" + (f"?{query}" if query else ""),
        body={name: value for name, value in wire.body.items() if name in _COUNTED},
        headers={**wire.headers, "accept": "application/json"},
    )


COUNTER: Final = TokenCounter(encode=encode_count, fields=("input_tokens",))
