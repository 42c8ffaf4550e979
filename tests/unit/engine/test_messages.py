"""Anthropic's Messages from the request to the bill, on every wire format and framing.

The official SDK reads the same message from a stream and from a whole reply. The cells that all
client formats share are in `test_matrix.py`.

Keeps C2, C5, C10, C26, C28, C32, C33, C37, C40, C43, C66, C80, C94.
"""

import json
import re
from typing import Any

import anthropic
import httpx2
import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house
from tests.message_stream import accumulated, events
from tests.scripted import Scripted, Silence, answers, ends, refuses, says
from tests.unit.engine.client_formats import exchange
from tests.unit.engine.same_conversations import HI, TOOLS
from tests.unit.engine.test_every_format import all_answers, all_wires, framed, home_of
from tests.unit.providers.shared_cases import ANSWERS
from tests.upstream.speakers import SECRETS
from tests.upstream.wires import Wire
from tollgate.engine.gateway import StreamTiming
from tollgate.ingress.formats import CHAT_COMPLETIONS, MESSAGES
from tollgate.providers.ports.base import UpstreamRefused
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

Json = dict[str, Any]
QUESTION = HI | {"tools": TOOLS}


async def ask(home: House, body: Json, **headers: str) -> Exchange:
    return await exchange(home, MESSAGES.path, body, **headers)


def whole(reply: Exchange) -> Json:
    """The message of a reply, whether it is streamed or not."""
    streamed = reply.headers["content-type"].startswith("text/event-stream")
    message: Json = accumulated(reply.body) if streamed else reply.json
    return message


def sdk_message(reply: Exchange) -> Json:
    """The message that the official client puts together of a reply."""
    streamed = reply.headers["content-type"].startswith("text/event-stream")

    def answer(sent: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(reply.status or 0, content=reply.body, headers=reply.raw_headers)

    client = anthropic.Anthropic(
        api_key="sk-tg-test",
        base_url="http://replay.invalid",
        max_retries=0,
        http_client=httpx2.Client(transport=httpx2.MockTransport(answer)),
    )
    asked: Any = {"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "Hi"}]}
    if not streamed:
        return client.messages.create(**asked).to_dict()
    with client.messages.stream(**asked) as stream:
        return stream.get_final_message().to_dict()


@all_wires
@all_answers
async def test_c37_c80_a_stream_is_the_whole_reply_for_every_format(wire: Wire, case: str) -> None:
    home = await home_of(wire, framed(wire, wire.write(ANSWERS[case])))
    streamed = await ask(home, QUESTION | {"stream": True})
    plain = await ask(home, QUESTION)
    assert (streamed.status, plain.status) == (200, 200)
    ours, theirs = whole(streamed), json.loads(plain.body)
    sdks = [sdk_message(streamed), sdk_message(plain)]
    for message in (ours, theirs, *sdks):
        message.pop("id")
    assert json.loads(json.dumps(ours, default=float)) == theirs
    of_stream, of_whole = sdks
    assert of_stream["content"] == of_whole["content"] == theirs["content"]
    assert of_stream["stop_reason"] == of_whole["stop_reason"] == theirs["stop_reason"]
    assert of_stream["usage"]["output_tokens"] == theirs["usage"]["output_tokens"]
    assert of_stream["usage"]["input_tokens"] == theirs["usage"]["input_tokens"]
    called = [block["id"] for block in theirs["content"] if block["type"] == "tool_use"]
    assert called == [call.id for call in ANSWERS[case].calls]


@all_wires
async def test_c33_c40_c80_a_break_ends_the_stream_with_an_error_and_leaks_nothing(
    wire: Wire,
) -> None:
    said = wire.write(ANSWERS["text"])
    home = await home_of(wire, framed(wire, [*said[: wire.head + 3], wire.overloaded]))
    reply = await ask(home, QUESTION | {"stream": True})
    first, *_, last = events(reply.body)
    assert (reply.status, first["type"], last["type"]) == (200, "message_start", "error")
    assert last["error"]["type"] == "overloaded_error"
    assert last["error"]["code"] == "provider_overloaded"
    with pytest.raises(anthropic.APIStatusError) as raised:
        sdk_message(reply)
    assert raised.value.type == "overloaded_error"
    assert not [secret for secret in SECRETS if secret.encode() in reply.body]
    assert home.spent_nano_usd == 0


@all_wires
@pytest.mark.parametrize("stream", [True, False])
async def test_c40_c43_c80_a_refusal_has_its_status_type_and_wait(wire: Wire, stream: bool) -> None:
    home = await home_of(wire, [wire.rate_limited])
    reply = await ask(home, QUESTION | {"stream": stream})
    assert (reply.status, reply.headers["retry-after"]) == (429, "7")
    assert reply.json["error"]["type"] == "rate_limit_error"
    assert reply.json["request_id"] == reply.headers["request-id"]
    with pytest.raises(anthropic.RateLimitError) as raised:
        sdk_message(reply)
    assert raised.value.request_id == reply.headers["x-request-id"]
    assert not [secret for secret in SECRETS if secret.encode() in reply.body]


async def test_c5_c26_c66_a_message_is_billed_and_recorded_as_a_chat_is() -> None:
    home = await house()
    reply = await ask(home, HI)
    message = json.loads(reply.body)
    record = home.record
    assert message["id"] == f"msg_{record.id}"
    assert reply.headers["x-generation-id"] == f"gen-{record.id}"
    assert reply.headers["request-id"] == reply.headers["x-request-id"] == record.id
    assert round(message["usage"]["cost"] * 10**9) == record.cost_nano_usd == home.spent_nano_usd
    assert record.cost_nano_usd > 0


@pytest.mark.parametrize("stream", [True, False])
async def test_c28_the_routing_is_told_to_who_asks(stream: bool) -> None:
    home = await house(near=Scripted(refuses(401)))
    reply = await ask(home, HI | {"stream": stream}, x_tollgate_metadata="enabled")
    told = whole(reply)["tollgate_metadata"]
    assert [attempt["provider"] for attempt in told["attempts"]] == ["near", "far"]
    assert "tollgate_metadata" not in whole(await ask(home, HI | {"stream": stream}))


async def test_c32_c80_silence_is_filled_with_pings_before_and_after_the_first_event() -> None:
    speech = [Silence(30), *says("Hel"), Silence(20), *ends()]
    home = await house(near=Scripted(speech), timing=StreamTiming())
    reply = await ask(home, HI | {"stream": True})
    kinds = [event["type"] for event in events(reply.body)]
    assert kinds[:3] == ["ping", "ping", "message_start"]
    assert kinds.count("ping") == 3
    assert b": keep-alive" not in reply.body
    assert sdk_message(reply)["content"] == [{"type": "text", "text": "Hel"}]


async def test_c33_c80_a_failure_after_an_early_commit_is_an_event() -> None:
    refused = Scripted([Silence(12), *refuses(401)])
    home = await house(near=refused, far=Scripted(refuses(401)))
    reply = await ask(home, HI | {"stream": True})
    kinds = [event["type"] for event in events(reply.body)]
    assert (reply.status, kinds) == (200, ["ping", "error"])
    with pytest.raises(anthropic.APIStatusError):
        sdk_message(reply)


@pytest.mark.parametrize(
    ("header", "value"),
    [("authorization", "Bearer {key}"), ("x-api-key", "{key}"), ("x-api-key", " {key} ")],
)
async def test_c2_a_key_is_taken_from_either_header_on_every_metered_route(
    header: str, value: str
) -> None:
    home = await house(near=Scripted(answers("Hello")))
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    body = json.dumps({"model": "acme/large", **HI}).encode()
    headers = {header: value.format(key=home.secret)}
    for row in (CHAT_COMPLETIONS, MESSAGES):
        reply = await request(app, "POST", row.path, headers=headers, body=body)
        assert reply.status == 200


async def test_c2_both_headers_may_come_and_the_bearer_counts() -> None:
    home = await house()
    assert (await ask(home, HI, authorization=f"Bearer {home.secret}")).status == 200
    refused = await ask(home, HI, authorization="Bearer sk-tg-wrong")
    assert (refused.status, refused.json["error"]["type"]) == (401, "authentication_error")
    assert refused.headers["x-should-retry"] == "false"


@pytest.mark.parametrize(
    ("words", "lengths"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", "210000 tokens > 200000 maximum."),
        (
            "maximum context length is 128000 tokens. Your messages resulted in 130000 tokens.",
            "130000 tokens > 128000 maximum.",
        ),
        (
            "input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            "1200000 tokens > 1048576 maximum.",
        ),
        ("Input is too long for requested model.", "The provider"),
    ],
)
async def test_c41_c80_a_prompt_that_is_too_long_is_said_in_anthropics_words(
    words: str, lengths: str
) -> None:
    body = json.dumps({"error": {"message": words}}).encode()
    refusing = Scripted([UpstreamRefused(400, {}, body)])
    reply = await ask(await house(near=refusing, far=refusing), HI)
    assert (reply.status, reply.json["error"]["code"]) == (400, "context_length_exceeded")
    assert reply.json["error"]["message"].startswith(f"prompt is too long: {lengths}")


async def test_c41_c80_so_is_one_that_is_longer_than_every_model_takes() -> None:
    long = "word " * 2_000_000
    reply = await ask(await house(), HI | {"messages": [{"role": "user", "content": long}]})
    assert reply.status == 400
    assert re.match(
        r"prompt is too long: \d+ tokens > \d+ maximum\. ", reply.json["error"]["message"]
    )


async def test_c40_c94_a_refusal_of_money_is_402_and_is_not_repeated() -> None:
    home = await house(funds_nano_usd=1)
    first = await ask(home, HI)
    assert first.status == 200
    reply = await ask(home, HI)
    assert (reply.status, reply.json["error"]["type"]) == (402, "billing_error")
    assert reply.json["error"]["code"] == "insufficient_credits"
    assert reply.headers["x-should-retry"] == "false"
