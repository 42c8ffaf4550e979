"""Error replies of OpenAI and those like it, before a stream and inside one, for every format."""

from typing import Final

from pydantic import JsonValue, ValidationError

from tollgate.core.errors import UpstreamError
from tollgate.providers.base import UpstreamRefused
from tollgate.providers.refusals import Refusal, refused, retry_after_s
from tollgate.wire.openai_chat_chunk import ErrorBody, ErrorDetail

# What an error inside a stream, which has no status of its own, says instead of one.
_STATUS_OF_TYPE: Final = {
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "invalid_request_error": 400,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "overloaded_error": 529,
}


def error_of_reply(reply: UpstreamRefused, provider: str) -> UpstreamError:
    """The meaning of an error status with its body, whatever the body is."""
    try:
        detail = _detail(ErrorBody.model_validate_json(reply.body))
    except ValidationError:
        # A proxy's HTML, Gemini's list or nothing at all: the status alone decides.
        detail = ErrorDetail()
    return refused(
        Refusal(
            provider=provider,
            status=reply.status,
            message=detail.message or "",
            code=_code(detail),
            retry_after_s=retry_after_s(reply.headers),
        )
    )


def error_in_stream(error: JsonValue, provider: str) -> UpstreamError:
    """The meaning of an error that came where a chunk was due."""
    try:
        detail = _detail(ErrorBody.model_validate({"error": error}))
    except ValidationError:
        detail = ErrorDetail()
    return refused(
        Refusal(
            provider=provider,
            status=_status(detail),
            message=detail.message or "",
            code=_code(detail),
        )
    )


def _detail(body: ErrorBody) -> ErrorDetail:
    if isinstance(body.error, ErrorDetail):
        return body.error
    message = body.error or body.message
    if message is None and isinstance(body.detail, str):
        message = body.detail
    return ErrorDetail(message=message, code=body.code, type=body.type)


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
