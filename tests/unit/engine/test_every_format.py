"""A request goes through parse, plan, codec and render, for every format behind every framing.

What a client reads of the stream is what it reads of the whole reply, and what the official SDK
puts together of it.

Keeps C7, C10, C15, C25, C26, C30, C31, C33, C37, C44.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import httpx2
import openai
import pytest
from msgspec.structs import replace
from openai.lib.streaming.chat import ChatCompletionStreamState

from tests.cells import cells
from tests.chat_stream import accumulated, exact
from tests.gateways import House, RecordedReply, house
from tests.scripted import Answer, Scripted
from tests.unit.providers.shared_cases import ANSWERS
from tests.unit.routing.catalogs import endpoint, model, provider
from tests.upstream import openai_chunks as chat
from tests.upstream.gemini_chunks import SIGNATURE
from tests.upstream.speakers import SECRETS
from tests.upstream.wires import WIRES, Wire
from tollgate.engine.generate import generate
from tollgate.providers.ports.base import Frame
from tollgate.providers.transports.body_frames import FrameDecoder

all_wires = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
all_answers = cells("case", ANSWERS)
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("weather", "now")
]


def framed(wire: Wire, events: Iterable[bytes]) -> list[Frame]:
    """Return the frames of an upstream whose bytes come one by one."""
    return [*_framed_bytewise(wire.framing, wire.body(events))]


@cache
def _framed_bytewise(framing: Callable[[], FrameDecoder], body: bytes) -> tuple[Frame, ...]:
    """Frame a body byte by byte, once in a run: the same few answers are heard by many tests."""
    reader = framing()
    pieces = (bytes([byte]) for byte in body)
    return (*(frame for piece in pieces for frame in reader.feed(piece)), *reader.end())


async def home_of(wire: Wire, *answers: Answer) -> House:
    """A gateway whose one provider speaks in this format, with a model that can do all it can."""
    target = wire.target
    row = provider(dialect=wire.dialect.model_dump(exclude_unset=True), **wire.place)
    served = model(
        endpoint("near", "m-1"),
        supports=tuple(sorted(target.supports)),
        input=tuple(sorted(target.input)),
    )
    return await house(
        near=Scripted(*answers),
        codec=wire.codec,
        providers={"near": row, "far": provider()},
        models={"acme/large": served},
        aliases={},
        routes={},
    )


async def asked(home: House, body: dict[str, Any], *, stream: bool) -> RecordedReply:
    """The reply to a request of a client's."""
    content = json.dumps(body | {"model": "acme/large", "stream": stream}).encode()
    call = replace(home.call("acme/large"), parsed=home.ingress.parse(content))
    reply = home.reply()
    await generate(home.gateway, call, home.sink(call, reply))
    return reply


class Sdk:
    """The official client, whose server answers with the reply it was given."""

    def __init__(self) -> None:
        self._reply = RecordedReply()
        self._client = openai.OpenAI(
            api_key="sk-tg-test",
            base_url="http://replay.invalid/v1",
            max_retries=0,
            http_client=httpx2.Client(transport=httpx2.MockTransport(self._answer)),
        )

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        content_type = self._reply.headers["content-type"]
        headers = {"content-type": content_type}
        return httpx2.Response(200, content=self._reply.body, headers=headers)

    def message(self, reply: RecordedReply) -> dict[str, Any]:
        """The message of a reply, put together by the SDK where it was streamed."""
        self._reply = reply
        if reply.headers["content-type"] == "application/json":
            whole = self._client.chat.completions.create(model="m", messages=[])
            return _said(whole.choices[0].message.to_dict())
        state = ChatCompletionStreamState()
        for chunk in self._client.chat.completions.create(model="m", messages=[], stream=True):
            state.handle_chunk(chunk)
        return _said(state.current_completion_snapshot.choices[0].message.to_dict())


def _said(message: dict[str, Any]) -> dict[str, Any]:
    """A message without the marks of the accumulator's own bookkeeping."""
    for call in message.get("tool_calls") or ():
        call.pop("index", None)
        call["function"].pop("parsed_arguments", None)
    message.pop("parsed", None)
    return {name: value for name, value in message.items() if value}


SDK = Sdk()
QUESTION: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS}


@all_wires
@all_answers
async def test_c7_the_official_sdk_reads_the_same_message_from_both(wire: Wire, case: str) -> None:
    home = await home_of(wire, framed(wire, wire.write(ANSWERS[case])))
    streamed = SDK.message(await asked(home, QUESTION, stream=True))
    assert streamed == SDK.message(await asked(home, QUESTION, stream=False))
    assert streamed.get("content", "") == "".join(ANSWERS[case].words)
    called = [call["id"] for call in streamed.get("tool_calls", ())]
    assert called == [call.id for call in ANSWERS[case].calls]


@all_wires
async def test_c33_c44_a_break_is_told_in_band_and_leaks_nothing(wire: Wire) -> None:
    events = wire.write(ANSWERS["text"])
    home = await home_of(wire, framed(wire, [*events[: wire.head + 3], wire.overloaded]))
    reply = await asked(home, QUESTION, stream=True)
    assert (reply.status, reply.error["code"]) == (200, "provider_overloaded")
    with pytest.raises(openai.APIError) as raised:
        SDK.message(reply)
    assert raised.value.code == "provider_overloaded"
    assert not [secret for secret in SECRETS if secret.encode() in reply.body]
    assert home.spent_nano_usd == 0


@all_wires
async def test_c33_c43_c44_a_refusal_has_its_status_and_leaks_nothing(wire: Wire) -> None:
    home = await home_of(wire, [wire.rate_limited])
    reply = await asked(home, QUESTION, stream=True)
    assert (reply.status, reply.headers["retry-after"]) == (429, "7")
    assert not [secret for secret in SECRETS if secret.encode() in reply.body]


# What a provider wants back of its own reasoning, verbatim: a signature, or the words.
SIGNED = {
    "openai_chat": "Two.",
    "sagemaker": "Two.",
    "openai_responses": "gAAA",
    "anthropic": "c2ln",
    "anthropic_vertex": "c2ln",
    "bedrock_invoke": "c2ln",
    "gemini": SIGNATURE,
    "gemini_vertex": SIGNATURE,
    "bedrock": "c2ln",
}


def second_turn(message: dict[str, Any]) -> dict[str, Any]:
    """The next request of a client that sends back what it was sent, and the results."""
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": f"result of {call['id']}"}
        for call in message.get("tool_calls", ())
    ]
    return QUESTION | {"messages": [*QUESTION["messages"], message, *results]}


async def test_c10_q33_openrouters_details_come_back_with_every_field() -> None:
    details = [
        {"type": "reasoning.summary", "summary": "In short.", "id": "s1", "index": 0},
        {
            "type": "reasoning.text",
            "text": "At length.",
            "signature": "c2ln",
            "id": "t1",
            "format": "anthropic-claude-v1",
            "index": 1,
        },
        {
            "type": "reasoning.encrypted",
            "data": "gAAA",
            "id": "e1",
            "format": "openai-responses-v1",
            "index": 2,
        },
    ]
    [wire] = (each for each in WIRES if each.name == "openai_chat")
    own = wire.dialect.model_copy(update={"reasoning_field": "reasoning_details"})
    said = [
        chat.sse(chat.chunk({"reasoning_details": details[:1]})),
        chat.sse(chat.chunk({"reasoning_details": details[1:]})),
        *wire.write(ANSWERS["tool"])[1:],
    ]
    wire = dataclasses.replace(wire, dialect=own)
    home = await home_of(wire, framed(wire, said))
    for stream in (True, False):
        reply = await asked(home, QUESTION, stream=stream)
        whole = accumulated(reply.body) if stream else exact(reply.body)
        await asked(home, second_turn(whole["choices"][0]["message"]), stream=True)
        sent = home.near.requests[-1].body["messages"]
        assert isinstance(sent, list)
        [assistant] = (m for m in sent if isinstance(m, dict) and m["role"] == "assistant")
        assert assistant["reasoning_details"] == details
