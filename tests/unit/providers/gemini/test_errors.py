"""Error replies of Gemini, by status, reason and detail; the bodies are synthetic.

Keeps C41, C44.
"""

import json
from typing import Any

import pytest

from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.providers.ports.base import Target, UpstreamRefused
from tollgate.providers.ports.formats import codec_of

TARGET = Target(provider="google", model="google/m", upstream_model="m")


def reply(status: int, error: object, **headers: str) -> UpstreamRefused:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return UpstreamRefused(status, named, json.dumps(error).encode())


def body(status: str = "", message: str = "", *details: dict[str, Any], code: int = 400) -> Any:
    return {"error": {"code": code, "message": message, "status": status, "details": [*details]}}


def error_of(refused: UpstreamRefused) -> UpstreamError:
    return codec_of("gemini").error(refused, TARGET)


@pytest.mark.parametrize(
    ("status", "error", "code"),
    [
        (400, body("INVALID_ARGUMENT", "Bad field."), ErrorCode.INVALID_REQUEST),
        (400, body("INVALID_ARGUMENT", "", {"reason": "API_KEY_INVALID"}), ErrorCode.PROVIDER_AUTH),
        (400, body("FAILED_PRECONDITION", "Enable billing."), ErrorCode.PROVIDER_AUTH),
        (401, body("UNAUTHENTICATED"), ErrorCode.PROVIDER_AUTH),
        (403, body("PERMISSION_DENIED"), ErrorCode.PROVIDER_AUTH),
        (404, body("NOT_FOUND"), ErrorCode.PROVIDER_UNAVAILABLE),
        (429, body("RESOURCE_EXHAUSTED"), ErrorCode.PROVIDER_RATE_LIMIT),
        (500, body("INTERNAL"), ErrorCode.PROVIDER_UNAVAILABLE),
        (503, body("UNAVAILABLE"), ErrorCode.PROVIDER_OVERLOADED),
        (504, body("DEADLINE_EXCEEDED"), ErrorCode.PROVIDER_TIMEOUT),
        (
            400,
            body(
                "INVALID_ARGUMENT",
                "The input token count (1200000) exceeds the maximum number of tokens allowed.",
            ),
            ErrorCode.CONTEXT_LENGTH_EXCEEDED,
        ),
        # An oversized prompt that AI Studio answers with the quota it would take.
        (
            429,
            body("RESOURCE_EXHAUSTED", "Quota exceeded for input_token_count."),
            ErrorCode.PROVIDER_RATE_LIMIT,
        ),
    ],
)
@pytest.mark.parametrize("in_list", [False, True])
def test_c41_a_refusal_has_its_meaning(
    in_list: bool, status: int, error: Any, code: ErrorCode
) -> None:
    found = error_of(reply(status, [error] if in_list else error))
    assert (found.code, found.status) == (code, status)


@pytest.mark.parametrize("error", ["<html>", [], {}, {"error": "?"}, {"error": {"code": "x"}}])
def test_a_body_that_says_nothing_leaves_it_to_the_status(error: object) -> None:
    assert error_of(reply(503, error)).code is ErrorCode.PROVIDER_OVERLOADED
    assert error_of(reply(400, error)).code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("headers", "delay", "expected"),
    [
        ({}, "34.4s", 34.4),
        ({}, "7s", 7.0),
        ({"retry_after": "3"}, "34.4s", 3.0),
        ({}, "soon", None),
        ({}, None, None),
    ],
)
def test_q40_retry_info_tells_when_to_come_back(
    headers: dict[str, str], delay: str | None, expected: float | None
) -> None:
    details = [{"@type": "…QuotaFailure", "violations": []}, {"retryDelay": delay}]
    error = body("RESOURCE_EXHAUSTED", "", *details)
    assert error_of(reply(429, error, **headers)).retry_after_s == expected


def test_c44_a_key_in_the_words_is_not_shown() -> None:
    error = error_of(
        reply(400, body("", "API key AIzaSyD-0123456789abcdef is odd, see https://x/y"))
    )
    assert "AIza" not in error.message
    assert "://" not in error.message
