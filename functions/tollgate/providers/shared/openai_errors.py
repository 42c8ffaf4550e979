"""Error replies of OpenAI and those like it, before a stream and inside one, for every format."""

from typing import Annotated, Final

import pydantic_core
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    JsonValue,
    TypeAdapter,
    ValidationError,
)

from tollgate.core.errors import UpstreamError
from tollgate.providers.base import Target, UpstreamRefused
from tollgate.providers.shared.refusals import ProviderRefusal, parse_retry_after_s, refused


def _as_text(value: object) -> object:
    """JSON in place of a text as the text that it should have been."""
    return pydantic_core.to_json(value).decode() if isinstance(value, dict | list) else value


_Text = Annotated[str, BeforeValidator(_as_text)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class ErrorDetail(_Shape):
    """The usual content of `error`; Google's layer has `details` besides."""

    message: _Text | None = None
    code: str | int | None = None
    type: str | None = None
    status: str | int | None = None
    status_code: int | None = None
    details: JsonValue = None


class FieldError(_Shape):
    """What FastAPI, and with it vLLM and Mistral, says of a field; its `input` is the prompt's."""

    loc: list[str | int] = []
    msg: str


class FieldErrors(_Shape):
    """Mistral's envelope around them."""

    detail: list[FieldError]


class ErrorBody(_Shape):
    """An error reply; some servers have no envelope, or other names for it."""

    error: ErrorDetail | str | None = None
    message: str | FieldErrors | None = None
    detail: str | list[FieldError] | None = None
    code: str | int | None = None
    type: str | None = None


# Google's layer for OpenAI's format answers with a list of one.
_BODY: Final = TypeAdapter[ErrorBody | list[ErrorBody]](ErrorBody | list[ErrorBody])

# What an error inside a stream, which has no status of its own, says instead of one. Responses says
# there what chat completions says by a status: https://platform.openai.com/docs/guides/error-codes
_STATUS_OF_TYPE: Final = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "content_filter": 400,
    "content_policy_violation": 400,
    "invalid_prompt": 400,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "server_is_overloaded": 503,
    "slow_down": 503,
    "overloaded_error": 529,
}


def error_of_reply(reply: UpstreamRefused, target: Target) -> UpstreamError:
    """The meaning of an error status with its body, whatever the body is."""
    try:
        body = _BODY.validate_json(reply.body)
        detail = _detail(body if isinstance(body, ErrorBody) else next(iter(body), ErrorBody()))
    except ValidationError:
        # A proxy's HTML, or nothing at all: the status alone decides.
        detail = ErrorDetail()
    return refused(
        ProviderRefusal(
            provider=target.provider,
            status=reply.status,
            message=detail.message or "",
            code=_code(detail),
            retry_after_s=parse_retry_after_s(reply.headers, detail.details),
        )
    )


def error_in_stream(error: JsonValue, provider: str) -> UpstreamError:
    """The meaning of an error that came where a chunk was due."""
    try:
        detail = _detail(ErrorBody.model_validate({"error": error}))
    except ValidationError:
        detail = ErrorDetail()
    return refused(
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
    said = body.error or body.message or body.detail
    message = said if isinstance(said, str) else _told(said)
    return ErrorDetail(message=message, code=body.code, type=body.type)


def _told(errors: FieldErrors | list[FieldError] | None) -> str | None:
    fields = errors.detail if isinstance(errors, FieldErrors) else errors
    told = (f"{'.'.join(map(str, field.loc))}: {field.msg}" for field in fields or ())
    return "; ".join(told) or None


def _code(detail: ErrorDetail) -> str:
    return (detail.code if isinstance(detail.code, str) else detail.type or "").lower()


def _status(detail: ErrorDetail) -> int | None:
    for stated in (detail.status_code, detail.code, detail.status):
        if isinstance(stated, str) and stated.isascii() and stated.isdigit():
            stated = int(stated)
        if isinstance(stated, int) and 400 <= stated <= 599:
            return stated
    for word in (detail.code, detail.type):
        if isinstance(word, str) and word in _STATUS_OF_TYPE:
            return _STATUS_OF_TYPE[word]
    return None
