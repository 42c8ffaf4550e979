"""The codec of Anthropic's Messages, and the requests that count the tokens of a prompt."""

import base64
from typing import Final
from urllib.parse import quote

import pydantic_core
from msgspec.structs import replace

from tollgate.providers.codecs.anthropic.decode import MessagesDecoder
from tollgate.providers.codecs.anthropic.encode import encode
from tollgate.providers.codecs.anthropic.errors import error_of_reply
from tollgate.providers.ports.base import Codec, Target, TokenCounter, WireRequest
from tollgate.providers.ports.wire_format import WireFormat
from tollgate.providers.shared.bedrock_models import base_model

# Fields that a counting request may have; Anthropic refuses any other with status 400.
_COUNTED: Final = frozenset(
    {
        "context_management",
        "mcp_servers",
        "messages",
        "model",
        "output_config",
        "speed",
        "system",
        "thinking",
        "tool_choice",
        "tools",
    }
)
_VERTEX_PATH: Final = (
    "/v1/projects/{project}/locations/{location}"
    "/publishers/anthropic/models/count-tokens:rawPredict"
)
_ACCEPT: Final = {"accept": "application/json"}


def encode_count(wire: WireRequest, target: Target) -> WireRequest | None:
    """Return the counting request; None for a Bedrock inference profile of an unknown model.

    Anthropic: https://platform.claude.com/docs/en/api/messages-count-tokens. Vertex:
    https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/count-tokens.
    Bedrock: https://docs.aws.amazon.com/bedrock/latest/userguide/count-tokens.html (2026-11-22).
    """
    headers = {**wire.headers, **_ACCEPT}
    if target.dialect.claude_carrier == "bedrock":
        model = base_model(target.upstream_model)
        if model is None:
            return None
        body = base64.b64encode(pydantic_core.to_json(wire.body)).decode("ascii")
        return replace(
            wire,
            path=f"/model/{quote(model, safe='')}/count-tokens",
            body={"input": {"invokeModel": {"body": body}}},
            headers=headers,
        )
    counted = {name: value for name, value in wire.body.items() if name in _COUNTED}
    if target.dialect.claude_carrier == "anthropic":
        return replace(wire, path="/messages/count_tokens", body=counted, headers=headers)
    return replace(
        wire,
        path=_VERTEX_PATH.format(project=target.project, location=target.location),
        # Only counting requests name the model in the body, and without a version after `@`:
        # https://github.com/BerriAI/litellm/issues/25798 (seen 2026-11-22).
        body={"model": target.upstream_model.partition("@")[0], **counted},
        headers=headers,
    )


COUNTER: Final = TokenCounter(encode=encode_count, fields=("input_tokens", "inputTokens"))


def make_codec(format_: WireFormat) -> Codec:
    return Codec(
        encode=lambda request, target: encode(request, target, format_),
        decoder=lambda target: MessagesDecoder(target.provider, signer=format_.signer_of(target)),
        error=error_of_reply,
    )
