"""A caller that asks sees the provider's own error body, without secrets and its prompt.

Keeps C44, C46.
"""

import json
from typing import Any

import pytest

from tests.asgi import Exchange
from tests.gateways import house
from tests.scripted import Scripted
from tests.unit.engine.client_formats import CONVERSING, ClientFormat, exchange
from tests.unit.engine.same_conversations import SAME
from tollgate.core.content import Text
from tollgate.core.request import GenerationRequest, UserMessage
from tollgate.engine.provider_errors import show_error_body
from tollgate.providers.ports.base import UpstreamRefused

SECRET = "sk-upstream-secret"
REFUSAL = {
    "error": {
        "message": f"Unknown field in tools[0] for {SECRET}.",
        "type": "invalid_request_error",
        "param": "tools[0].strictness",
        "code": "unknown_parameter",
        "details": [{"api_key": "letmein", "line": 7, "fatal": True, "note": None}],
    }
}
SHOWN = {
    "error": {
        "message": "Unknown field in tools[0] for [redacted]",
        "type": "invalid_request_error",
        "param": "tools[0].strictness",
        "code": "unknown_parameter",
        "details": [{"api_key": "[redacted]", "line": 7, "fatal": True, "note": None}],
    }
}


async def refused(
    client: ClientFormat, body: bytes, *, status: int = 400, stream: bool = False, **headers: str
) -> Exchange:
    refusal = [UpstreamRefused(status, {}, body)]
    home = await house(near=Scripted(refusal), far=Scripted(refusal))
    question = {**SAME["text"][client.name], "stream": stream, client.limit: 100}
    return await exchange(home, client.row.path, question, **headers)


def prompt(text: str) -> GenerationRequest:
    return GenerationRequest(model="m", messages=(UserMessage(content=(Text(text=text),)),))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("client", CONVERSING, ids=lambda it: it.name)
async def test_c46_a_caller_sees_the_providers_body_where_it_asks(
    client: ClientFormat, stream: bool
) -> None:
    body = json.dumps(REFUSAL).encode()
    plain = await refused(client, body, stream=stream)
    assert "provider_error" not in plain.error
    asked = await refused(client, body, stream=stream, x_tollgate_provider_errors="enabled")
    assert (asked.status, plain.status) == (400, 400)
    assert asked.error["provider_error"] == {"status": 400, "body": SHOWN}
    assert SECRET.encode() not in asked.body


async def test_c46_a_failed_credential_and_a_page_are_shown_without_secrets() -> None:
    [chat] = [it for it in CONVERSING if it.name == "chat_completions"]
    header = {"x_tollgate_provider_errors": "enabled"}
    page = f"<html>Bad key: {SECRET}</html>".encode()
    reply = await refused(chat, page, status=401, **header)
    assert reply.status == 502
    assert reply.error["provider_error"] == {"status": 401, "body": "Bad [redacted]"}


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ({"error": "No: my secret plan B here"}, {"error": "No: [prompt] here"}),
        ({"my secret plan B": 1}, {"[prompt]": 1}),
        ({"error": {"token": 123456789012345}}, {"error": {"token": "[redacted]"}}),
        ([], "[]"),
    ],
)
def test_c46_what_repeats_the_prompt_is_withheld(body: Any, shown: Any) -> None:
    request = prompt("Please keep my secret plan B to yourself.")
    assert show_error_body(json.dumps(body).encode(), request) == shown


def test_c46_a_body_with_many_values_is_one_bounded_text() -> None:
    shown = show_error_body(json.dumps(list(range(5_000))).encode(), prompt("Hi"))
    assert isinstance(shown, str)
    assert len(shown) <= 2_000
