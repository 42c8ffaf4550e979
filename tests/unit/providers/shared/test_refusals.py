"""Whose fault a refusal is, and what of its words may be shown.

Keeps C41, C43, C44.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.providers.ports.base import Codec, Target, UpstreamRefused
from tollgate.providers.ports.formats import codec_of
from tollgate.providers.shared.refusals import (
    MESSAGE_LENGTH_MAX,
    ProviderRefusal,
    error_of_refusal,
    parse_retry_after_s,
    redact,
)

TARGET = Target(provider="acme", model="acme/m", upstream_model="m-1")
SECRETS = [
    "sk-proj-Ab12Cd34Ef56Gh78",
    "sk-ant-api03-abcdefghijklmno",
    "gsk_abcdefghijklmnop1234",
    "xai-abcdefghijkl",
    "AIzaSyA-abcdefghij_1234567",
    "AKIAIOSFODNN7EXAMPLE",
    "8f14e45fceea167a5a36dedd4bea2543",
    "3d6f0a1c-9a3f-4d2b-8c1e-0a1b2c3d4e5f",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
]


def chat(status: int, body: bytes = b"", **headers: str) -> UpstreamError:
    return codec_of("openai_chat").error(UpstreamRefused(status, headers, body), TARGET)


def aws(status: int, kind: str = "", message: str = "") -> UpstreamError:
    headers = {"x-amzn-errortype": f"{kind}:http://internal.example/coral/"} if kind else {}
    body = b'{"message":"%b"}' % message.encode()
    return codec_of("bedrock").error(UpstreamRefused(status, headers, body), TARGET)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (301, ErrorCode.PROVIDER_UNAVAILABLE),
        (400, ErrorCode.INVALID_REQUEST),
        (401, ErrorCode.PROVIDER_AUTH),
        (402, ErrorCode.PROVIDER_AUTH),
        (403, ErrorCode.PROVIDER_AUTH),
        (404, ErrorCode.PROVIDER_UNAVAILABLE),
        (405, ErrorCode.PROVIDER_UNAVAILABLE),
        (408, ErrorCode.PROVIDER_TIMEOUT),
        (410, ErrorCode.PROVIDER_UNAVAILABLE),
        (413, ErrorCode.INVALID_REQUEST),
        (422, ErrorCode.INVALID_REQUEST),
        (424, ErrorCode.PROVIDER_UNAVAILABLE),
        (429, ErrorCode.PROVIDER_RATE_LIMIT),
        (500, ErrorCode.PROVIDER_UNAVAILABLE),
        (502, ErrorCode.PROVIDER_UNAVAILABLE),
        (503, ErrorCode.PROVIDER_OVERLOADED),
        (504, ErrorCode.PROVIDER_TIMEOUT),
        (529, ErrorCode.PROVIDER_OVERLOADED),
    ],
)
@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"\xff", b'{"error": 7}'])
def test_c41_q40_the_status_decides_whatever_the_body_is(
    status: int, code: ErrorCode, body: bytes
) -> None:
    error = chat(status, body)
    assert (error.code, error.status) == (code, status)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"error":{"code":"context_length_exceeded"}}', ErrorCode.CONTEXT_LENGTH_EXCEEDED),
        (
            b'{"error":{"type":"too_many_prompt_tokens","code":400}}',
            ErrorCode.CONTEXT_LENGTH_EXCEEDED,
        ),
        (
            b'{"error":{"message":"This model\'s maximum context length is 9 tokens."}}',
            ErrorCode.CONTEXT_LENGTH_EXCEEDED,
        ),
        (
            b'{"message":"prompt is too long: 9 tokens > 8 maximum"}',
            ErrorCode.CONTEXT_LENGTH_EXCEEDED,
        ),
        (b'{"error":"exceeded max context length"}', ErrorCode.CONTEXT_LENGTH_EXCEEDED),
        (b'{"error":{"code":"content_filter","message":"no"}}', ErrorCode.CONTENT_FILTER),
        (b'{"error":{"code":"invalid_api_key"}}', ErrorCode.PROVIDER_AUTH),
        (
            b'{"code":"invalid argument","error":"Incorrect API key provided: na***ys."}',
            ErrorCode.PROVIDER_AUTH,
        ),
        (b'{"error":"Incorrect%20API%20key%20provided:%20ba***na."}', ErrorCode.PROVIDER_AUTH),
        (b'[{"error":{"code":400,"message":"API key not valid."}}]', ErrorCode.PROVIDER_AUTH),
        (b'{"error":"no tool \'Incorrect API key provided\'"}', ErrorCode.INVALID_REQUEST),
        (b'{"error":{"code":"unsupported_value"}}', ErrorCode.INVALID_REQUEST),
        (b'{"detail":"Extra inputs are not permitted"}', ErrorCode.INVALID_REQUEST),
    ],
)
def test_c41_c44_a_plain_400_is_told_apart_by_its_code_and_last_by_its_words(
    body: bytes, code: ErrorCode
) -> None:
    assert chat(400, body).code is code


RETRY_INFO = (
    b'[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded",'
    b'"details":[{"@type":"x"},{"@type":"RetryInfo","retryDelay":"34.4s"}]}}]'
)


@pytest.mark.parametrize(
    "codec", [codec_of("openai_chat"), codec_of("anthropic"), codec_of("gemini")]
)
def test_c43_googles_retry_info_is_kept_in_whatever_format_it_comes(codec: Codec) -> None:
    assert codec.error(UpstreamRefused(429, {}, RETRY_INFO), TARGET).retry_after_s == 34.4
    stated = UpstreamRefused(429, {"retry-after": "7"}, RETRY_INFO)
    assert codec.error(stated, TARGET).retry_after_s == 7


@pytest.mark.parametrize("details", [b'"soon"', b"[7]", b'[{"retryDelay":7}]', b"{}"])
def test_details_of_another_kind_say_nothing_of_when_to_come_back(details: bytes) -> None:
    error = chat(429, b'{"error":{"message":"no","details":%b}}' % details)
    assert (error.code, error.retry_after_s) == (ErrorCode.PROVIDER_RATE_LIMIT, None)


@pytest.mark.parametrize(
    ("status", "kind", "hinted"),
    [
        (403, "AccessDeniedException", True),
        (404, "ResourceNotFoundException", True),
        (403, "ExpiredTokenException", False),
        (429, "ThrottlingException", False),
    ],
)
def test_c44_a_model_that_bedrock_refuses_says_how_it_is_opened(
    status: int, kind: str, hinted: bool
) -> None:
    message = aws(status, kind, "User: arn:aws:sts::123456789012:x is not authorized").message
    assert ("AWS Marketplace" in message and "first-use form" in message) == hinted
    assert "123456789012" not in message


def test_a_rate_limit_may_come_as_413() -> None:
    body = b'{"error":{"code":"rate_limit_exceeded","message":"tokens per minute"}}'
    assert chat(413, body).code is ErrorCode.PROVIDER_RATE_LIMIT


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (403, "ExpiredTokenException", ErrorCode.PROVIDER_AUTH),
        (403, "AccessDeniedException", ErrorCode.PROVIDER_AUTH),
        (400, "UnrecognizedClientException", ErrorCode.PROVIDER_AUTH),
        (429, "ThrottlingException", ErrorCode.PROVIDER_RATE_LIMIT),
        (400, "ServiceQuotaExceededException", ErrorCode.PROVIDER_RATE_LIMIT),
        (503, "ServiceUnavailableException", ErrorCode.PROVIDER_OVERLOADED),
        (408, "ModelTimeoutException", ErrorCode.PROVIDER_TIMEOUT),
        (424, "ModelErrorException", ErrorCode.PROVIDER_UNAVAILABLE),
        (404, "ResourceNotFoundException", ErrorCode.PROVIDER_UNAVAILABLE),
        (500, "InternalServerException", ErrorCode.PROVIDER_UNAVAILABLE),
        (400, "ValidationException", ErrorCode.INVALID_REQUEST),
    ],
)
def test_c41_a_class_of_aws_is_told_where_the_status_is_not_enough(
    status: int, kind: str, code: ErrorCode
) -> None:
    assert aws(status, kind, "no").code is code


def test_c41_the_class_may_stand_in_the_body() -> None:
    body = b'{"__type":"com.amazon.coral#ExpiredTokenException","Message":"expired"}'
    error = codec_of("bedrock").error(UpstreamRefused(400, {}, body), TARGET)
    assert error.code is ErrorCode.PROVIDER_AUTH


def test_c41_an_oversized_prompt_at_bedrock_is_seen_from_its_words() -> None:
    error = aws(400, "ValidationException", "Input Tokens Exceeded: too many")
    assert error.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "1", "retry-after-ms": "0"}, 1.0),
        (
            {
                "retry-after": "Sat, 21 Nov 2026 00:00:30 GMT",
                "date": "Sat, 21 Nov 2026 00:00:00 GMT",
            },
            30.0,
        ),
        ({"retry-after": "Sat, 21 Nov 2026 00:00:30 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "9" * 400}, None),
        ({}, None),
    ],
)
def test_c43_retry_after_is_read_in_every_form(
    headers: dict[str, str], expected: float | None
) -> None:
    assert parse_retry_after_s(headers) == expected
    error = codec_of("openai_chat").error(UpstreamRefused(429, headers, b""), TARGET)
    assert error.retry_after_s == expected


@pytest.mark.parametrize("status", [401, 402, 403, 404, 429, 500, 503, 529])
def test_c44_only_a_fault_of_the_caller_is_told_in_the_providers_words(status: int) -> None:
    body = b'{"error":{"message":"wombat"}}'
    assert "wombat" not in chat(status, body).message
    assert "wombat" in chat(400, body).message


def test_c44_what_is_told_of_a_fault_of_the_caller_is_redacted() -> None:
    body = b'{"error":{"message":"bad field for key sk-abcdefgh12345678"}}'
    shown = chat(400, body).message
    assert "bad field" in shown
    assert "abcdefgh" not in shown


@pytest.mark.parametrize("secret", SECRETS)
@given(before=st.text(max_size=50), after=st.text(max_size=50))
def test_c44_no_secret_is_shown(secret: str, before: str, after: str) -> None:
    shown = redact(f"{before} {secret} {after}")
    assert not any(secret[at : at + 10] in shown for at in range(len(secret) - 9))


@pytest.mark.parametrize(
    "message",
    [
        "Incorrect API key provided: hunter2. Check it.",
        "Your api key: ****ter2 is invalid",
        "Authorization: Bearer hunter2",
        "token=hunter2",
        "password: 'hunter2'",
        "see https://user:hunter2@example.com/v1?key=hunter2 for more",
        "GET HTTP://EXAMPLE.COM/hunter2",
        "keys ending in ***hunter2",
        "client_secret=hunter2",
        "refresh_token: hunter2",
        "Cookie: hunter2",
        "blob.example/c?a=b&sig=hunter2",
        "see https:\\/\\/blob.example\\/c?d=hunter2",
        "see https://blob.example/a%20hunter2",
        "see https%3A%2F%2Fblob.example%2Fhunter2",
        "https:&#x2F;&#x2F;blob.example&#x2F;hunter2",
        "authorization%3A%20Bearer%20hunter2",
        "Bearer%20hunter2",
        "api\\u005fkey=hunter2",
        "key%3Dhunter2",
        "ｋｅｙ＝hunter2",
        "sk%2Dproj%2Dhunter2",
    ],
)
def test_c44_what_is_announced_as_a_secret_is_cut(message: str) -> None:
    shown = redact(message)
    assert "hunter2" not in shown
    assert "ter2" not in shown


@pytest.mark.parametrize(
    ("message", "whose"),
    [
        ("no inference profile arn:aws:bedrock:eu-west-1:123456789012:x/y", "x/y"),
        ("User 123456789012 has no quota", "123456789012"),
        ("projects/acme-prod/locations/global is not allowlisted", "acme-prod"),
        ("the account ops+llm@acme.example is closed", "acme"),
    ],
)
def test_c44_whose_account_it_is_is_not_shown(message: str, whose: str) -> None:
    assert whose not in redact(message)


PROMPT = "Dear diary, today I have finally decided to tell you about all of it"


@pytest.mark.parametrize(
    "message",
    [
        f"messages.0.content: Input should be a list, got '{PROMPT}'",
        f'invalid value "{PROMPT}"',
        f"invalid value “{PROMPT}”",
        f"invalid value `{PROMPT}",
        f"body: {{'messages': [{{'role': 'user', 'content': '{PROMPT}'}}]}} is wrong",
        f"[{{'loc': 'messages', 'input': '{PROMPT}'",
    ],
)
def test_c44_no_piece_of_a_prompt_is_shown(message: str) -> None:
    shown = redact(message)
    assert "diary" not in shown
    assert "decided" not in shown


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported parameter: 'max_tokens' is not supported with this model.",
        "Tool choice is required, but model did not call a tool",
        "The provided model identifier is invalid.",
        "Invalid 'messages[0].tool_calls[0].id': expected a string of at most 40, but got 45.",
        "model us.anthropic.claude-sonnet-4-5-20250929-v1:0 does not support `temperature`",
        "messages.2.content: Expected toolResult blocks for the following Ids: call_time",
    ],
)
def test_what_helps_the_caller_is_kept(message: str) -> None:
    assert redact(message) == message


@given(st.text(max_size=6000))
def test_a_shown_message_is_one_short_printable_line(message: str) -> None:
    shown = redact(message)
    assert len(shown) <= MESSAGE_LENGTH_MAX
    assert shown.isprintable()


def test_a_refusal_without_words_still_says_what_happened() -> None:
    error = error_of_refusal(ProviderRefusal(provider="acme", status=400))
    assert error.message == "The provider acme refused the request (HTTP 400)."
