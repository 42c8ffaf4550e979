"""Errors of OpenAI-like servers: replies with an error status, and errors inside a stream.

OpenAI and its imitators send an error as an object, a string or a list, with or without an
envelope (seen 2026-11-21). The classes below have only the fields that the gateway reads.
"""

from typing import Annotated, Final

import pydantic_core
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, RootModel
from pydantic_core import ValidationError

from tollgate.core.errors import UpstreamError
from tollgate.core.json_value import JsonValue
from tollgate.providers.ports.base import Target, UpstreamRefused
from tollgate.providers.shared.refusals import (
    ProviderRefusal,
    error_of_refusal,
    parse_retry_after_s,
)


def _as_text(value: object) -> object:
    """Convert an object or a list to JSON text, for a field that should be text."""
    return pydantic_core.to_json(value).decode() if isinstance(value, dict | list) else value


_Text = Annotated[str, BeforeValidator(_as_text)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class ErrorDetail(_Shape):
    """The usual content of `error`, to which Google's OpenAI-compatible API adds `details`."""

    message: _Text | None = None
    code: str | int | None = None
    type: str | None = None
    status: str | int | None = None
    status_code: int | None = None
    details: JsonValue = None


class FieldError(_Shape):
    """FastAPI's validation error (vLLM, Mistral), without `input`, which may be the prompt."""

    loc: list[str | int] = Field(default=[])
    msg: str


class FieldErrors(_Shape):
    """Mistral's envelope around validation errors."""

    detail: list[FieldError]


class ErrorBody(_Shape):
    """An error reply; some servers send no envelope, or one with another name."""

    error: ErrorDetail | str | None = None
    message: str | FieldErrors | None = None
    detail: str | list[FieldError] | None = None
    code: str | int | None = None
    type: str | None = None


class ErrorBodies(RootModel[ErrorBody | list[ErrorBody]]):
    """The body of a reply; Google's OpenAI-compatible API sends a list with one error."""

    model_config = ConfigDict(defer_build=True)


# The HTTP status for each error type, because errors inside a stream have no status. The Responses
# API sends some errors in its stream that chat completions answers with a status:
# https://platform.openai.com/docs/guides/error-codes
_STATUS_OF_TYPE: Final = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "content_filter": 400,
    "content_policy_violation": 400,
    "moderation_blocked": 400,
    "image_generation_user_error": 400,
    "invalid_prompt": 400,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "server_is_overloaded": 503,
    "slow_down": 503,
    "overloaded_error": 529,
}


def parse_openai_reply_error(reply: UpstreamRefused, target: Target) -> UpstreamError:
    """Return the error for a reply with any body."""
    try:
        body = ErrorBodies.model_validate_json(reply.body).root
        detail = _detail(body if isinstance(body, ErrorBody) else next(iter(body), ErrorBody()))
    except ValidationError:
        # The body is empty or a proxy's HTML, so only the status is known.
        detail = ErrorDetail()
    return error_of_refusal(
        ProviderRefusal(
            provider=target.provider,
            status=reply.status,
            message=detail.message or "",
            code=_code(detail),
            retry_after_s=parse_retry_after_s(reply.headers, detail.details),
        )
    )


def parse_openai_stream_error(error: JsonValue, provider: str) -> UpstreamError:
    """Return the error for an error object that arrived as a chunk."""
    try:
        detail = _detail(ErrorBody.model_validate({"error": error}))
    except ValidationError:
        detail = ErrorDetail()
    return error_of_refusal(
        ProviderRefusal(
            provider=provider,
            status=_status(detail),
            message=detail.message or "",
            code=_code(detail),
            retry_after_s=parse_retry_after_s({}, detail.details),
        )
    )


def _detail(body: ErrorBody) -> ErrorDetail:
    if isinstance(body.error, ErrorDetail):
        return body.error
    words = body.error or body.message or body.detail
    message = words if isinstance(words, str) else _joined(words)
    return ErrorDetail(message=message, code=body.code, type=body.type)


def _joined(errors: FieldErrors | list[FieldError] | None) -> str | None:
    fields = errors.detail if isinstance(errors, FieldErrors) else errors
    lines = (f"{'.'.join(map(str, field.loc))}: {field.msg}" for field in fields or ())
    return "; ".join(lines) or None


def _code(detail: ErrorDetail) -> str:
    return (detail.code if isinstance(detail.code, str) else detail.type or "").lower()


def _status(detail: ErrorDetail) -> int | None:
    for status in (detail.status_code, detail.code, detail.status):
        if isinstance(status, str) and status.isascii() and status.isdigit():
            status = int(status)
        if isinstance(status, int) and 400 <= status <= 599:
            return status
    for word in (detail.code, detail.type):
        if isinstance(word, str) and word in _STATUS_OF_TYPE:
            return _STATUS_OF_TYPE[word]
    return None
