"""The codec of OpenAI's Responses, and the requests that count the tokens of a prompt."""

from typing import Final

from msgspec.structs import replace

from tollgate.providers.codecs.openai_responses.decode import ResponsesDecoder
from tollgate.providers.codecs.openai_responses.encode import encode
from tollgate.providers.ports.base import Codec, Target, TokenCounter, WireRequest
from tollgate.providers.ports.wire_format import WireFormat
from tollgate.providers.shared.openai_errors import parse_openai_reply_error

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
    """Return the request for `POST …/responses/input_tokens`.

    https://developers.openai.com/api/reference/resources/responses/subresources/input_tokens
    (2026-11-22)
    """
    path, _, query = wire.path.partition("?")
    return replace(
        wire,
        path=f"{path}/input_tokens" + (f"?{query}" if query else ""),
        body={name: value for name, value in wire.body.items() if name in _COUNTED},
        headers={**wire.headers, "accept": "application/json"},
    )


COUNTER: Final = TokenCounter(encode=encode_count, fields=("input_tokens",))


def make_codec(format_: WireFormat) -> Codec:
    return Codec(
        encode=lambda request, target: encode(request, target, format_),
        decoder=lambda target: ResponsesDecoder(
            target.provider,
            signer=format_.signer_of(target),
            searches=target.native_search is not None,
            passes=target.dialect.unknown_fields,
        ),
        error=parse_openai_reply_error,
        has_text_tools=True,
    )
