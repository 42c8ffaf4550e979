"""Errors as callers meet them.

Keeps C40, C41, C42, C43.
"""

import json
import math

from tests.cells import cells
from tests.unit.ingress.samples import chat_completions
from tollgate.core.errors import ErrorCode, GatewayError
from tollgate.ingress.errors import STATUS, openai_reply
from tollgate.ingress.shared.wire.reply_models import ErrorEnvelope

# C41 and C42, written out a second time on purpose.
CONTRACT = {
    "provider_auth": (502, "server_error"),
    "provider_rate_limit": (429, "rate_limit_error"),
    "provider_overloaded": (529, "server_error"),
    "context_length_exceeded": (400, "invalid_request_error"),
    "content_filter": (400, "invalid_request_error"),
    "provider_timeout": (504, "server_error"),
    "provider_unavailable": (502, "server_error"),
    "insufficient_credits": (402, "insufficient_quota"),
    "key_limit_exceeded": (402, "insufficient_quota"),
    "model_not_allowed": (403, "permission_error"),
    "invalid_api_key": (401, "authentication_error"),
    "workspace_locked": (403, "permission_error"),
    "rate_limit_exceeded": (429, "rate_limit_error"),
    "invalid_request": (400, "invalid_request_error"),
    "audio_not_supported_by_model": (400, "invalid_request_error"),
    "image_not_supported_by_model": (400, "invalid_request_error"),
    "file_not_supported_by_model": (400, "invalid_request_error"),
    "file_not_found": (400, "invalid_request_error"),
    "previous_response_not_found": (400, "invalid_request_error"),
    "payload_too_large": (413, "invalid_request_error"),
    "file_too_large": (413, "invalid_request_error"),
    "file_count_quota_exceeded": (402, "insufficient_quota"),
    "storage_quota_exceeded": (402, "insufficient_quota"),
    "unsupported_file_type": (400, "invalid_request_error"),
    "mime_mismatch": (400, "invalid_request_error"),
    "document_unreadable": (400, "invalid_request_error"),
    "document_too_large": (400, "invalid_request_error"),
    "idempotency_conflict": (409, "invalid_request_error"),
    "team_in_use": (409, "invalid_request_error"),
    "idempotency_mismatch": (422, "invalid_request_error"),
    "internal_error": (500, "server_error"),
    "answer_too_large": (502, "server_error"),
    "model_not_found": (404, "not_found_error"),
    "not_found": (404, "not_found_error"),
    "permission_denied": (403, "permission_error"),
    "service_unavailable": (503, "server_error"),
    "unsupported_encoding": (415, "invalid_request_error"),
    "method_not_allowed": (405, "invalid_request_error"),
    "websocket_not_served": (426, "invalid_request_error"),
}


@cells("code", ErrorCode)
def test_c41_c42_every_code_has_its_status_and_type(code: ErrorCode) -> None:
    reply = openai_reply(GatewayError(code, "Why."), "req")
    status, type_ = CONTRACT[code.value]
    assert reply.status == STATUS[code] == status
    assert json.loads(reply.body)["error"]["type"] == type_


def test_c41_the_table_has_no_code_of_its_own() -> None:
    assert set(STATUS) == set(ErrorCode)


def test_c40_the_envelope_says_what_why_where_and_which_request() -> None:
    error = GatewayError(ErrorCode.INVALID_REQUEST, "n must be at most 1.", param="n")
    reply = chat_completions().error(error, "Na1b2c3d4e5f6g7")
    assert json.loads(reply.body) == {
        "error": {
            "message": "n must be at most 1.",
            "type": "invalid_request_error",
            "code": "invalid_request",
            "param": "n",
            "request_id": "Na1b2c3d4e5f6g7",
        }
    }
    assert reply.headers == {"content-type": "application/json"}
    ErrorEnvelope.model_validate_json(reply.body)


@cells("code", ErrorCode)
@cells(
    ("known_s", "told"),
    [(None, "5"), (0.0, "1"), (0.2, "1"), (1.0, "1"), (1.01, "2"), (30, "30"), (math.inf, "86400")],
)
def test_c43_retry_after_is_whole_seconds_on_every_429_503_and_529(
    code: ErrorCode, known_s: float | None, told: str
) -> None:
    reply = openai_reply(GatewayError(code, "Why.", retry_after_s=known_s), "req")
    expected = told if reply.status in (429, 503, 529) else None
    assert reply.headers.get("retry-after") == expected


def test_c43_a_413_names_the_file_upload() -> None:
    error = GatewayError(ErrorCode.PAYLOAD_TOO_LARGE, "The body is over 6 MB.")
    message = json.loads(openai_reply(error, "req").body)["error"]["message"]
    assert message.startswith("The body is over 6 MB. ")
    # Neither has the limit of a request's body, which POST /v1/files has too.
    assert "POST /v1/files/presigned or POST /v1/uploads" in message


def test_c43_a_402_is_told_as_it_is() -> None:
    error = GatewayError(ErrorCode.INSUFFICIENT_CREDITS, "Balance 0.1 USD, estimate 0.2 USD.")
    assert json.loads(openai_reply(error, "req").body)["error"]["message"] == error.message


def test_a_401_says_how_to_authenticate() -> None:
    reply = openai_reply(GatewayError(ErrorCode.INVALID_API_KEY, "No such key."), "req")
    assert reply.headers["www-authenticate"] == "Bearer"
