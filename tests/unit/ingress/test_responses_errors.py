"""Errors in OpenAI's Responses format, as clients of it understand them.

Keeps C40, C74, C80, C94.
"""

import json

import openai
import pytest
from jsonschema import Draft202012Validator

from tests.cells import cells
from tests.open_responses import check_stream
from tests.references import published_schema
from tests.response_stream import response_events
from tests.unit.ingress.responses_samples import FORMAT, Replay, life, renderer
from tests.unit.ingress.samples import record
from tollgate.core.content import Text
from tollgate.core.errors import ErrorCode, GatewayError
from tollgate.core.events import Started
from tollgate.ingress.responses.wire.response_reply import ResponsesErrorEnvelope


def test_c80_a_stream_that_breaks_ends_with_an_error_and_the_response_that_failed() -> None:
    writer = renderer()
    stream = b"".join(map(writer.feed, [Started(), *life(0, Text(text=""), "Hi")]))
    error = GatewayError(ErrorCode.PROVIDER_OVERLOADED, "Busy.")
    stream += writer.fail(error, record())
    check_stream(stream)
    *_, told, failed = response_events(stream)
    assert (told["type"], told["code"]) == ("error", "provider_overloaded")
    response = failed["response"]
    assert (failed["type"], response["status"]) == ("response.failed", "failed")
    assert response["error"] == {
        "code": "server_is_overloaded",
        "message": "Busy.",
        "tollgate_code": "provider_overloaded",
    }
    assert response["output"][0]["status"] == "incomplete"
    assert response["usage"]["output_tokens"] == 5


def test_c80_a_stream_that_breaks_before_any_event_begins_first() -> None:
    error = GatewayError(ErrorCode.PROVIDER_TIMEOUT, "Late.")
    stream = renderer().fail(error, record())
    check_stream(stream)
    types = [event["type"] for event in response_events(stream)]
    assert types == ["response.created", "response.in_progress", "error", "response.failed"]


@pytest.mark.parametrize(
    ("code", "known"),
    [
        (ErrorCode.RATE_LIMIT_EXCEEDED, "rate_limit_exceeded"),
        (ErrorCode.PROVIDER_RATE_LIMIT, "rate_limit_exceeded"),
        (ErrorCode.CONTEXT_LENGTH_EXCEEDED, "context_length_exceeded"),
        (ErrorCode.KEY_LIMIT_EXCEEDED, "insufficient_quota"),
        (ErrorCode.PROVIDER_TIMEOUT, "server_error"),
    ],
)
def test_c94_a_response_that_failed_has_a_code_that_codex_knows(
    code: ErrorCode, known: str
) -> None:
    error = GatewayError(code, "Why.", retry_after_s=1.5)
    *_, failed = response_events(renderer().fail(error, record()))
    assert failed["response"]["error"]["code"] == known
    waits = "try again in 1.5s" in failed["response"]["error"]["message"]
    assert waits is (known == "rate_limit_exceeded")


@cells("code", ErrorCode)
def test_c40_every_error_has_openais_envelope_and_our_code(code: ErrorCode) -> None:
    reply = FORMAT.error(GatewayError(code, "Why."), "req")
    ResponsesErrorEnvelope.model_validate_json(reply.body)
    Draft202012Validator(published_schema("openai.error")).validate(json.loads(reply.body))
    assert json.loads(reply.body)["error"]["request_id"] == "req"


def test_c94_a_limit_that_starts_anew_is_told_with_the_second_at_which_it_does() -> None:
    spent = GatewayError(ErrorCode.KEY_LIMIT_EXCEEDED, "Used up.")
    spent.resets_s = 1_790_000_000
    reply = FORMAT.error(spent, "req")
    told = json.loads(reply.body)["error"]
    assert (reply.status, told["type"], told["code"]) == (
        429,
        "usage_limit_reached",
        "key_limit_exceeded",
    )
    assert told["resets_at"] == 1_790_000_000
    assert reply.headers["x-should-retry"] == "false"


def test_c94_spent_credit_is_told_as_openai_tells_it() -> None:
    reply = FORMAT.error(GatewayError(ErrorCode.INSUFFICIENT_CREDITS, "None left."), "req")
    told = json.loads(reply.body)["error"]
    assert (reply.status, told["type"]) == (429, "insufficient_quota")
    assert reply.headers["x-should-retry"] == "false"


def test_c80_openais_sdk_raises_at_a_stream_that_breaks() -> None:
    error = GatewayError(ErrorCode.PROVIDER_OVERLOADED, "Busy.")
    body = renderer().fail(error, record())
    client = Replay(body, "text/event-stream").client
    with pytest.raises(openai.APIError, match="Busy"):
        list(client.responses.create(model="m", input="Hi", stream=True))
