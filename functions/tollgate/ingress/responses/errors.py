"""Errors with the codes and statuses that clients of the Responses API understand.

docs/formats/responses.md shows how Codex reacts to each error.
"""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace
from pydantic_core import from_json, to_json

from tollgate.core.errors import ErrorCode, GatewayError
from tollgate.core.json_value import JsonValue
from tollgate.ingress.base import ErrorReply, Routed
from tollgate.ingress.errors import openai_error, openai_reply, public_code, reached_limit

# When Codex gets one of these OpenAI codes, it waits, or stops with its own message; it retries
# after all other codes.
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
    """Return the `error` object of a failed response, with OpenAI's and Tollgate's code."""
    message = error.message
    if error.code in (ErrorCode.PROVIDER_RATE_LIMIT, ErrorCode.RATE_LIMIT_EXCEEDED):
        wait_s = error.retry_after_s or 1
        # Codex parses the waiting time from the message.
        message = f"{message} Please try again in {wait_s:.1f}s."
    return {
        "code": _OWN_CODES.get(error.code, "server_error"),
        "message": message,
        "tollgate_code": public_code(error.code),
        **reached_limit(error.limit),
    }


def error_event(error: GatewayError, request_id: str) -> dict[str, JsonValue]:
    """Return the content of an `error` event; OpenAI's SDKs raise the nested `error` object."""
    content = openai_error(error, request_id, _FIELDS)
    return {
        "code": content["code"],
        "message": content["message"],
        "param": content["param"],
        "error": {**content},
    }


def responses_reply(
    error: GatewayError, request_id: str, routed: Routed | None = None
) -> ErrorReply:
    """Render an error as an HTTP reply in OpenAI's envelope.

    Insufficient credit has status 429, as with OpenAI, because Codex retries status 402 six times.
    """
    reply = openai_reply(error, request_id, routed, _FIELDS)
    if error.code not in _SPENT:
        return reply
    body = from_json(reply.body)
    if error.resets_s is not None:
        body["error"] |= {"type": _USED_UP, "resets_at": error.resets_s}
    return replace(reply, status=_SPENT_STATUS, body=to_json(body))
