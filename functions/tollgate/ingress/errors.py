"""HTTP statuses, headers and bodies for errors, in OpenAI's format."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from pydantic_core import to_json

from tollgate.core.errors import ErrorCode, GatewayError, MethodNotAllowed, UpstreamError
from tollgate.core.json_value import JsonValue
from tollgate.core.limits import MONEY_KINDS, RateLimit, ReachedLimit
from tollgate.core.money.amounts import usd
from tollgate.ingress.base import ErrorReply, Routed

STATUS: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.AUDIO_NOT_SUPPORTED: 400,
    ErrorCode.IMAGE_NOT_SUPPORTED: 400,
    ErrorCode.FILE_NOT_SUPPORTED: 400,
    ErrorCode.FILE_NOT_FOUND: 400,
    ErrorCode.UNSUPPORTED_FILE_TYPE: 400,
    ErrorCode.MIME_MISMATCH: 400,
    ErrorCode.DOCUMENT_UNREADABLE: 400,
    ErrorCode.DOCUMENT_TOO_LARGE: 400,
    ErrorCode.PREVIOUS_RESPONSE_NOT_FOUND: 400,
    ErrorCode.CONTEXT_LENGTH_EXCEEDED: 400,
    ErrorCode.CONTENT_FILTER: 400,
    ErrorCode.INVALID_API_KEY: 401,
    ErrorCode.INSUFFICIENT_CREDITS: 402,
    ErrorCode.KEY_LIMIT_EXCEEDED: 402,
    ErrorCode.FILE_COUNT_QUOTA_EXCEEDED: 402,
    ErrorCode.STORAGE_QUOTA_EXCEEDED: 402,
    ErrorCode.PERMISSION_DENIED: 403,
    ErrorCode.MODEL_NOT_ALLOWED: 403,
    ErrorCode.WORKSPACE_LOCKED: 403,
    ErrorCode.MODEL_NOT_FOUND: 404,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.METHOD_NOT_ALLOWED: 405,
    ErrorCode.IDEMPOTENCY_CONFLICT: 409,
    ErrorCode.TEAM_IN_USE: 409,
    ErrorCode.PAYLOAD_TOO_LARGE: 413,
    ErrorCode.FILE_TOO_LARGE: 413,
    ErrorCode.UNSUPPORTED_ENCODING: 415,
    ErrorCode.IDEMPOTENCY_MISMATCH: 422,
    ErrorCode.WEBSOCKET_NOT_SERVED: 426,
    ErrorCode.RATE_LIMIT_EXCEEDED: 429,
    ErrorCode.PROVIDER_RATE_LIMIT: 429,
    ErrorCode.INTERNAL_ERROR: 500,
    # A provider's 401 means that the operator's credentials are wrong; the caller's key is valid.
    ErrorCode.PROVIDER_AUTH: 502,
    ErrorCode.PROVIDER_UNAVAILABLE: 502,
    ErrorCode.ANSWER_TOO_LARGE: 502,
    ErrorCode.SERVICE_UNAVAILABLE: 503,
    ErrorCode.PROVIDER_TIMEOUT: 504,
    ErrorCode.PROVIDER_OVERLOADED: 529,
}

# OpenAI's error types: https://platform.openai.com/docs/guides/error-codes (2026-08-21)
_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}

_RETRY_STATUSES: Final = frozenset({429, 503, 529})
# Statuses after which the same request would only fail again.
_PERMANENT: Final = frozenset({401, 402, 403})
# SDKs may retry if the wait is at most this long; for longer waits, a header tells them not to.
_REPEATED_WITHIN_S: Final = 60
_RETRY_AFTER_DEFAULT_S: Final = 5
_RETRY_AFTER_MAX_S: Final = 86_400

# A format's field names, keyed by the names in chat completions, because errors from planning and
# attempts use those names.
FieldNames = Mapping[str, str]
NO_OTHER_NAMES: Final[FieldNames] = {}

_UPLOAD_HINT: Final = (
    "Upload large files with POST /v1/files/presigned or POST /v1/uploads, and send their ids "
    "instead."
)


def _retry_after_s(error: GatewayError) -> int | None:
    """Return the value of `Retry-After`, at least 1; None if the error does not get this header."""
    if STATUS[error.code] not in _RETRY_STATUSES or not error.may_repeat:
        return None
    if error.retry_after_s is None:
        return _RETRY_AFTER_DEFAULT_S
    return math.ceil(min(max(error.retry_after_s, 1), _RETRY_AFTER_MAX_S))


def public_code(code: ErrorCode) -> str:
    """Return the error code that callers see; the two idempotency errors share one code."""
    is_mismatch = code is ErrorCode.IDEMPOTENCY_MISMATCH
    return (ErrorCode.IDEMPOTENCY_CONFLICT if is_mismatch else code).value


def field_at_fault(error: GatewayError, names: FieldNames) -> tuple[str | None, str]:
    """Return the field at fault and the message, with the field renamed according to `names`."""
    own_name = names.get(error.param or "")
    if error.param is None or own_name is None:
        return error.param, error.message
    word = rf"(?<![\w./-]){re.escape(error.param)}(?![\w./-]*\w)"
    return own_name, re.sub(word, lambda _: own_name, error.message)


def openai_error(
    error: GatewayError,
    request_id: str,
    names: FieldNames = NO_OTHER_NAMES,
    *,
    upload_hint: str = _UPLOAD_HINT,
) -> dict[str, JsonValue]:
    """Return the `error` object of OpenAI's envelope."""
    param, message = field_at_fault(error, names)
    if error.code is ErrorCode.PAYLOAD_TOO_LARGE:
        message = f"{message} {upload_hint}"
    status = STATUS[error.code]
    type_ = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {
        "message": message,
        "type": type_,
        "code": public_code(error.code),
        "param": param,
        "request_id": request_id,
        **reached_limit(error.limit),
        **provider_reply(error),
    }


def provider_reply(error: GatewayError) -> dict[str, JsonValue]:
    """Return the field with the provider's error; no field unless the caller requested it."""
    if not isinstance(error, UpstreamError) or error.provider_body is None:
        return {}
    return {"provider_error": {"status": error.status, "body": error.provider_body}}


def reached_limit(limit: ReachedLimit | None) -> dict[str, JsonValue]:
    """Return the `limit` field of an error object; empty if no limit caused the error.

    Money limits are in USD; other limits count requests or tokens.
    """
    if limit is None:
        return {}
    in_usd = limit.kind in MONEY_KINDS
    resets = None if limit.resets_s is None else datetime.fromtimestamp(limit.resets_s, UTC)
    return {
        "limit": {
            "level": limit.level,
            "id": limit.id,
            "kind": limit.kind,
            "limit": float(usd(limit.limit)) if in_usd else limit.limit,
            "remaining": float(usd(limit.remaining)) if in_usd else limit.remaining,
            "resets_at": None if resets is None else f"{resets:%Y-%m-%dT%H:%M:%SZ}",
            **({} if limit.per is None else {"per": limit.per, "models": limit.models}),
        }
    }


def error_headers(error: GatewayError) -> dict[str, str]:
    """Return the headers of an error reply, which are the same in all formats."""
    status = STATUS[error.code]
    headers = {"content-type": "application/json"}
    retry = _retry_after_s(error)
    if retry is not None:
        headers["retry-after"] = str(retry)
    if not error.may_repeat or status in _PERMANENT or (retry or 0) > _REPEATED_WITHIN_S:
        # Without this header, Claude Code and the SDKs of OpenAI and Anthropic retry.
        headers["x-should-retry"] = "false"
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    if isinstance(error, MethodNotAllowed):
        headers["allow"] = ", ".join(error.allowed)
    return headers


def openai_reply(
    error: GatewayError,
    request_id: str,
    routed: Routed | None = None,
    names: FieldNames = NO_OTHER_NAMES,
    *,
    upload_hint: str = _UPLOAD_HINT,
) -> ErrorReply:
    """Render an error as an HTTP reply in OpenAI's envelope."""
    error_object = openai_error(error, request_id, names, upload_hint=upload_hint)
    return error_reply(error, {"error": {**error_object}}, routed)


def error_reply(
    error: GatewayError, envelope: dict[str, JsonValue], routed: Routed | None
) -> ErrorReply:
    """Return an HTTP reply with an error's envelope, and the routing unless it is None."""
    if routed is not None:
        envelope["tollgate_metadata"] = tollgate_metadata(routed)
    return ErrorReply(
        status=STATUS[error.code], body=to_json(envelope), headers=error_headers(error)
    )


def openai_limit_headers(
    requests: RateLimit | None, tokens: RateLimit | None, *, request_id: str
) -> dict[str, str]:
    """Return OpenAI's `x-ratelimit-…` headers; resets are durations, so the request id is not
    needed.

    https://platform.openai.com/docs/guides/rate-limits (2026-11-22)
    """
    del request_id
    headers: dict[str, str] = {}
    for unit, limit in (("requests", requests), ("tokens", tokens)):
        if limit is not None:
            headers[f"x-ratelimit-limit-{unit}"] = str(limit.limit)
            headers[f"x-ratelimit-remaining-{unit}"] = str(limit.remaining)
            headers[f"x-ratelimit-reset-{unit}"] = f"{limit.reset_s:.3f}s"
    return headers


def tollgate_metadata(routed: Routed) -> JsonValue:
    """Return how a request was routed, the same in all formats; a successful attempt has status
    200."""
    return {
        "requested": routed.requested,
        "route": routed.route,
        "rule": routed.rule,
        "attempts": [
            {
                "provider": attempt.provider,
                "model": attempt.model,
                "status": 200 if attempt.error is None else attempt.status,
                "error": attempt.error,
                "ms": attempt.duration_ms,
            }
            for attempt in routed.attempts
        ],
        "reused_generation": routed.reused and f"gen-{routed.reused}",
        "catalog_sha": routed.catalog_sha,
    }
