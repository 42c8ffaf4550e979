"""Errors of the Messages API: replies from Anthropic, Google or AWS, and errors inside a stream."""

from pydantic_core import ValidationError

from tollgate.core.errors import UpstreamError
from tollgate.providers.codecs.anthropic.wire import ErrorBodies, ErrorBody, ErrorDetail
from tollgate.providers.ports.base import Target, UpstreamRefused
from tollgate.providers.shared.anthropic_statuses import STATUS_OF_TYPE
from tollgate.providers.shared.bedrock import aws_class, code_of
from tollgate.providers.shared.refusals import (
    ProviderRefusal,
    error_of_refusal,
    parse_retry_after_s,
)


def error_of_reply(reply: UpstreamRefused, target: Target) -> UpstreamError:
    """Return the error for a reply from Anthropic, Google or AWS."""
    body = _body(reply.body)
    detail = body.error or ErrorDetail()
    name = aws_class(reply.headers.get("x-amzn-errortype", ""))
    return error_of_refusal(
        ProviderRefusal(
            provider=target.provider,
            status=reply.status,
            message=detail.message or body.message or body.capital_message or "",
            code=code_of(name) if name else (detail.type or detail.status or "").lower(),
            retry_after_s=parse_retry_after_s(reply.headers, detail.details),
        )
    )


def error_in_stream(detail: ErrorDetail, provider: str) -> UpstreamError:
    """Return the error for an `error` event."""
    return error_of_refusal(
        ProviderRefusal(
            provider=provider,
            status=STATUS_OF_TYPE.get(detail.type or ""),
            message=detail.message or "",
            code=detail.type or "",
        )
    )


def _body(data: bytes) -> ErrorBody:
    try:
        body = ErrorBodies.model_validate_json(data).root
    except ValidationError:
        # The body is empty or a proxy's HTML, so only the status and the exception class are known.
        return ErrorBody()
    if isinstance(body, list):
        return body[0] if body else ErrorBody()
    return body
