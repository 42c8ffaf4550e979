"""The limit of an error, in the envelope of each format.

Keeps C40, C92.
"""

import json
from typing import Any

import pytest

from tests.unit.ingress import messages_requests, responses_samples
from tests.unit.ingress.samples import chat_completions
from tollgate.core.errors import ErrorCode, GatewayError
from tollgate.core.limits import ReachedLimit
from tollgate.ingress.base import Ingress
from tollgate.ingress.messages.wire.reply import MessagesErrorEnvelope
from tollgate.ingress.responses.errors import response_error
from tollgate.ingress.responses.wire.response_reply import ResponseFailure, ResponsesErrorEnvelope
from tollgate.ingress.shared.wire.reply_models import ErrorEnvelope

DAY = ReachedLimit(
    level="team",
    id="search",
    kind="day",
    limit=5_000_000_000,
    remaining=1,
    resets_s=1_795_305_600,
)
SHOWN = {
    "level": "team",
    "id": "search",
    "kind": "day",
    "limit": 5.0,
    "remaining": 0.000000001,
    "resets_at": "2026-11-22T00:00:00Z",
}
TOKENS = ReachedLimit(level="member", id="ana", kind="tokens", limit=9_000, remaining=12)


def refusal(limit: ReachedLimit | None) -> GatewayError:
    error = GatewayError(ErrorCode.KEY_LIMIT_EXCEEDED, "Used up.")
    error.limit = limit
    return error


FORMATS = [
    (chat_completions(), ErrorEnvelope),
    (messages_requests.FORMAT, MessagesErrorEnvelope),
    (responses_samples.FORMAT, ResponsesErrorEnvelope),
]


@pytest.mark.parametrize(("format_", "model"), FORMATS)
def test_c92_an_error_names_the_level_that_refuses_and_what_is_left(
    format_: Ingress, model: Any
) -> None:
    reply = format_.error(refusal(DAY), "req")
    assert json.loads(reply.body)["error"]["limit"] == SHOWN
    model.model_validate_json(reply.body)
    counted = json.loads(format_.error(refusal(TOKENS), "req").body)["error"]["limit"]
    assert (counted["limit"], counted["remaining"], counted["resets_at"]) == (9_000, 12, None)
    assert "limit" not in json.loads(format_.error(refusal(None), "req").body)["error"]


def test_c92_a_stream_of_responses_that_a_limit_ends_names_it() -> None:
    told = response_error(refusal(DAY))
    assert told["limit"] == SHOWN
    ResponseFailure.model_validate(told)
