"""Error replies of Bedrock, and exceptions in its streams."""

import msgspec
from msgspec import Struct, field

from tollgate.core.errors import UpstreamError
from tollgate.providers.ports.base import Frame, Target, UpstreamRefused
from tollgate.providers.shared.aws_errors import aws_class, code_of, status_of
from tollgate.providers.shared.refusals import (
    UNREADABLE,
    ProviderRefusal,
    error_of_refusal,
    parse_retry_after_s,
)


class _ErrorBody(Struct, frozen=True):
    """An error reply, or an exception in a stream."""

    message: str | None = None
    capital_message: str | None = field(default=None, name="Message")
    type: str | None = field(default=None, name="__type")


def error_of_bedrock_reply(reply: UpstreamRefused, target: Target) -> UpstreamError:
    """Return the error for a reply, whose class is in `x-amzn-errortype` or in the body."""
    body = _body(reply.body)
    name = aws_class(reply.headers.get("x-amzn-errortype") or body.type or "")
    return error_of_refusal(
        ProviderRefusal(
            provider=target.provider,
            status=reply.status,
            message=_message(body),
            code=code_of(name),
            retry_after_s=parse_retry_after_s(reply.headers),
        )
    )


def error_in_bedrock_stream(frame: Frame, provider: str) -> UpstreamError:
    """Return the error for an exception in a stream."""
    name = aws_class(frame.exception or "")
    return error_of_refusal(
        ProviderRefusal(
            provider=provider,
            status=status_of(name),
            message=_message(_body(frame.data)),
            code=code_of(name),
        )
    )


def _body(data: bytes) -> _ErrorBody:
    try:
        return msgspec.json.decode(data, type=_ErrorBody)
    except UNREADABLE:
        # The body is a proxy's HTML or empty: status and class decide.
        return _ErrorBody()


def _message(body: _ErrorBody) -> str:
    return body.message or body.capital_message or ""
