"""Error replies of the three hosts that speak the Messages API.

Keeps C41, C43, C44.
"""

import json
from typing import Any

import pytest

from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.providers.ports.base import Target, UpstreamRefused
from tollgate.providers.ports.formats import codec_of

TARGET = Target(provider="acme", model="anthropic/m", upstream_model="m-1")


def error(status: int, body: Any, **headers: str) -> UpstreamError:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return codec_of("anthropic").error(UpstreamRefused(status, headers, sent), TARGET)


def anthropic(status: int, kind: str, message: str = "no", **headers: str) -> UpstreamError:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return error(status, body, **headers)


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, "invalid_request_error", ErrorCode.INVALID_REQUEST),
        (401, "authentication_error", ErrorCode.PROVIDER_AUTH),
        (402, "billing_error", ErrorCode.PROVIDER_AUTH),
        (403, "permission_error", ErrorCode.PROVIDER_AUTH),
        (404, "not_found_error", ErrorCode.PROVIDER_UNAVAILABLE),
        (413, "request_too_large", ErrorCode.INVALID_REQUEST),
        (429, "rate_limit_error", ErrorCode.PROVIDER_RATE_LIMIT),
        (500, "api_error", ErrorCode.PROVIDER_UNAVAILABLE),
        (504, "timeout_error", ErrorCode.PROVIDER_TIMEOUT),
        (529, "overloaded_error", ErrorCode.PROVIDER_OVERLOADED),
    ],
)
def test_c41_every_type_of_error_has_its_code(status: int, kind: str, code: ErrorCode) -> None:
    found = anthropic(status, kind)
    assert found.code is code
    assert found.status == status


def test_c43_retry_after_is_kept() -> None:
    found = anthropic(429, "rate_limit_error", **{"retry-after": "17"})
    assert found.retry_after_s == 17.0


def test_c41_a_prompt_that_is_too_long_is_told_apart() -> None:
    words = "prompt is too long: 200082 tokens > 200000 maximum"
    assert anthropic(400, "invalid_request_error", words).code is ErrorCode.CONTEXT_LENGTH_EXCEEDED


def test_c41_a_filtered_answer_is_told_apart_by_the_only_words_there_are() -> None:
    words = "Output blocked by content filtering policy"
    assert anthropic(400, "invalid_request_error", words).code is ErrorCode.CONTENT_FILTER


def test_c44_the_callers_own_fault_is_told_in_redacted_words() -> None:
    found = anthropic(
        400, "invalid_request_error", "max_tokens: too big, see https://x.example/?k=1"
    )
    assert "max_tokens: too big" in found.message
    assert "://" not in found.message


@pytest.mark.parametrize(
    ("status", "name", "code"),
    [
        (400, "ValidationException", ErrorCode.INVALID_REQUEST),
        (400, "UnrecognizedClientException", ErrorCode.PROVIDER_AUTH),
        (400, "ServiceQuotaExceededException", ErrorCode.PROVIDER_RATE_LIMIT),
        (429, "ThrottlingException", ErrorCode.PROVIDER_RATE_LIMIT),
        (503, "ServiceUnavailableException", ErrorCode.PROVIDER_OVERLOADED),
    ],
)
def test_q40_bedrock_says_its_class_in_a_header(status: int, name: str, code: ErrorCode) -> None:
    found = error(status, {"message": "no"}, **{"x-amzn-errortype": f"{name}:http://x.example/"})
    assert found.code is code


def test_bedrock_has_words_of_its_own_for_a_long_prompt() -> None:
    found = error(400, {"Message": "Input is too long for requested model."})
    assert found.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED


@pytest.mark.parametrize("as_list", [False, True])
def test_vertex_may_answer_with_a_list_of_one(as_list: bool) -> None:
    body: Any = {"error": {"code": 400, "message": "bad field", "status": "INVALID_ARGUMENT"}}
    found = error(400, [body] if as_list else body)
    assert found.code is ErrorCode.INVALID_REQUEST
    assert "bad field" in found.message


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error": 1}', b'"no"'])
def test_what_cannot_be_read_is_told_by_its_status(body: bytes) -> None:
    assert error(529, body).code is ErrorCode.PROVIDER_OVERLOADED
