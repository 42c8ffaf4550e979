"""Errors in Anthropic's envelope.

https://platform.claude.com/docs/en/api/errors (2026-11-22). docs/coding-agents.md shows how
Claude Code reacts to each error.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from tollgate.core.errors import ErrorCode, GatewayError
from tollgate.core.ids import created_s
from tollgate.core.json_value import JsonValue
from tollgate.core.limits import RateLimit
from tollgate.ingress.base import ErrorReply, Routed
from tollgate.ingress.errors import (
    STATUS,
    error_reply,
    field_at_fault,
    openai_limit_headers,
    provider_reply,
    public_code,
    reached_limit,
)

_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_FIELDS: Final = {
    "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
    "reasoning": "thinking",
    "response_format": "output_config.format",
    "stop": "stop_sequences",
    "user": "metadata.user_id",
}
# If the message contains these words, Claude Code compacts the conversation and continues.
_TOO_LONG: Final = "prompt is too long"
# `details`, keyed by the refused field. When the tool runner in Anthropic's SDKs sees these, it
# retries without `thread`, and sends the whole conversation from then on.
_DETAILS: Final[Mapping[str, dict[str, JsonValue]]] = {
    "thread": {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
}


def _anthropic_error(error: GatewayError) -> dict[str, JsonValue]:
    """Return the `error` object, with both Anthropic's type and Tollgate's code."""
    status = STATUS[error.code]
    param, message = field_at_fault(error, _FIELDS)
    if error.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED:
        over = error.overlength
        lengths = f"{over.tokens} tokens > {over.tokens_max} maximum. " if over else ""
        message = f"{_TOO_LONG}: {lengths}{message}"
    content: dict[str, JsonValue] = {
        "type": _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error"),
        "message": message,
        "code": public_code(error.code),
        "param": param,
        **reached_limit(error.limit),
        **provider_reply(error),
    }
    if details := _DETAILS.get(error.param or ""):
        content["details"] = details
    return content


def anthropic_limit_headers(
    requests: RateLimit | None, tokens: RateLimit | None, *, request_id: str
) -> dict[str, str]:
    """Return the `anthropic-ratelimit-…` headers, and OpenAI's headers.

    https://platform.claude.com/docs/en/api/rate-limits (2026-11-22)
    """
    headers = openai_limit_headers(requests, tokens, request_id=request_id)
    for unit, limit in (("requests", requests), ("tokens", tokens)):
        if limit is not None:
            resets = datetime.fromtimestamp(math.ceil(created_s(request_id) + limit.reset_s), UTC)
            headers[f"anthropic-ratelimit-{unit}-limit"] = str(limit.limit)
            headers[f"anthropic-ratelimit-{unit}-remaining"] = str(limit.remaining)
            headers[f"anthropic-ratelimit-{unit}-reset"] = f"{resets:%Y-%m-%dT%H:%M:%SZ}"
    return headers


def anthropic_reply(
    error: GatewayError, request_id: str, routed: Routed | None = None
) -> ErrorReply:
    """Render an error as an HTTP reply in Anthropic's envelope."""
    return error_reply(error, error_envelope(error, request_id), routed)


def error_envelope(error: GatewayError, request_id: str) -> dict[str, JsonValue]:
    """Return the envelope of an error, which replies and failed streams share."""
    return {"type": "error", "error": _anthropic_error(error), "request_id": request_id}
