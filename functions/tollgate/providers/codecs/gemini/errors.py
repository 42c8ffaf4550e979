"""Errors of Gemini: replies with an error status, and errors inside a stream.

AI Studio answers a wrong key with 400. For some oversized prompts it answers 429, as it does for an
exhausted token quota; no field tells the two apart, so both become `provider_rate_limit`.
"""

from collections.abc import Mapping
from typing import Final

from pydantic_core import ValidationError

from tollgate.core.errors import UpstreamError
from tollgate.core.json_value import JsonValue
from tollgate.providers.codecs.gemini.wire import ErrorBodies, ErrorBody, ErrorDetail
from tollgate.providers.ports.base import Target, UpstreamRefused
from tollgate.providers.shared.refusals import (
    ProviderRefusal,
    error_of_refusal,
    parse_retry_after_s,
)

# Reasons and statuses that are the operator's fault, although the HTTP status of 400 usually means
# a fault of the caller: https://ai.google.dev/gemini-api/docs/troubleshooting (seen 2026-11-21).
# FAILED_PRECONDITION means that billing is off or that the country is not supported.
_OURS: Final = frozenset(
    {
        "API_KEY_INVALID",
        "API_KEY_EXPIRED",
        "API_KEY_SERVICE_BLOCKED",
        "BILLING_DISABLED",
        "FAILED_PRECONDITION",
    }
)


def error_of_reply(reply: UpstreamRefused, target: Target) -> UpstreamError:
    """Return the error for a reply, whose body may be a list with one error."""
    try:
        body = ErrorBodies.model_validate_json(reply.body).root
    except ValidationError:
        # The body is empty or a proxy's HTML, so only the status is known.
        detail = ErrorDetail()
    else:
        detail = _first(body)
    return _meant(detail, target.provider, reply.status, reply.headers)


def error_in_stream(error: JsonValue, provider: str) -> UpstreamError:
    """Return the error for an error object that arrived as a chunk."""
    try:
        detail = ErrorDetail.model_validate(error)
    except ValidationError:
        detail = ErrorDetail()
    return _meant(detail, provider, detail.code, {})


def _first(body: ErrorBody | list[ErrorBody]) -> ErrorDetail:
    if isinstance(body, list):
        return body[0].error if body else ErrorDetail()
    return body.error


def _meant(
    detail: ErrorDetail, provider: str, status: int | None, headers: Mapping[str, str]
) -> UpstreamError:
    reasons = {info.reason for info in detail.details} | {detail.status}
    return error_of_refusal(
        ProviderRefusal(
            provider=provider,
            status=status,
            message=detail.message or "",
            code="invalid_api_key" if reasons & _OURS else (detail.status or "").lower(),
            retry_after_s=parse_retry_after_s(
                headers, [info.model_dump(by_alias=True) for info in detail.details]
            ),
        )
    )
