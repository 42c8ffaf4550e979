"""The mapping of errors to what clients of Responses understand.

What Codex does at each of them is in docs/formats/responses.md.
"""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace
from pydantic_core import from_json, to_json

from tollgate.core.errors import ErrorCode, GatewayError
from tollgate.core.json_value import JsonValue
from tollgate.ingress.base import ErrorReply, Routed
from tollgate.ingress.errors import openai_error, openai_reply, public_code, reached_limit

# At these codes Codex gives up with words of its own, or waits; others it repeats.
_OWN_CODES: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.CONTENT_FILTER: "invalid_prompt",
    ErrorCode.CONTEXT_LENGTH_EXCEEDED: "context_length_exceeded",
    ErrorCode.INSUFFICIENT_CREDITS: "insufficient_quota",
    ErrorCode.INVALID_REQUEST: "invalid_prompt",
    ErrorCode.KEY_LIMIT_EXCEEDED: "insufficient_quota",
    ErrorCode.PROVIDER_OVERLOADED: "server_is_overloaded",
    ErrorCode.PROVIDER_RATE_LIMIT: "rate_limit_exceeded",
    ErrorCode.RATE_LIMIT_EXCEEDED: "rate_limit_exceeded",
}
_FIELDS: Final = {
    "max_tokens": "max_output_tokens",
    "messages": "input",
    "response_format": "text.format",
}
_USED_UP: Final = "usage_limit_reached"
_SPENT: Final = frozenset({ErrorCode.INSUFFICIENT_CREDITS, ErrorCode.KEY_LIMIT_EXCEEDED})
_SPENT_STATUS: Final = 429


def response_error(error: GatewayError) -> dict[str, JsonValue]:
    """Return `error` of a response that failed: OpenAI's code, with ours beside it."""
    message = error.message
    if error.code in (ErrorCode.PROVIDER_RATE_LIMIT, ErrorCode.RATE_LIMIT_EXCEEDED):
        wait_s = error.retry_after_s or 1
        # Codex reads the time to wait from the text.
        message = f"{message} Please try again in {wait_s:.1f}s."
    return {
        "code": _OWN_CODES.get(error.code, "server_error"),
        "message": message,
        "tollgate_code": public_code(error.code),
        **reached_limit(error.limit),
    }


def error_event(error: GatewayError, request_id: str) -> dict[str, JsonValue]:
    """Return the content of an `error` event; the SDKs of OpenAI raise at the object in it."""
    told = openai_error(error, request_id, _FIELDS)
    return {
        "code": told["code"],
        "message": told["message"],
        "param": told["param"],
        "error": {**told},
    }


def responses_reply(
    error: GatewayError, request_id: str, routed: Routed | None = None
) -> ErrorReply:
    """Render an error as HTTP, in OpenAI's envelope.

    A refusal for money is 429 as OpenAI's own is: Codex repeats a 402 six times.
    """
    reply = openai_reply(error, request_id, routed, _FIELDS)
    if error.code not in _SPENT:
        return reply
    body = from_json(reply.body)
    if error.resets_s is not None:
        body["error"] |= {"type": _USED_UP, "resets_at": error.resets_s}
    return replace(reply, status=_SPENT_STATUS, body=to_json(body))
