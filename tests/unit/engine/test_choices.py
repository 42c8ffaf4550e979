"""C14: several answers to one request, from a provider that has them or from one that has not.

Keeps C14, C30, C34, C36, C37.
"""

import asyncio
import json
from typing import Any

import pytest

from tests.chat_stream import frames
from tests.gateways import House, RecordedReply, house, request_body
from tests.scripted import FOREVER, Answer, Scripted, Silence, answers, frame, refuses, says
from tests.unit.routing.catalogs import provider
from tests.upstream.openai_chunks import chunk, usage
from tollgate.core.clock import Deadline
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.engine.gateway import Call
from tollgate.engine.generate import generate
from tollgate.providers.ports.base import Frame

BROKEN = UpstreamError(ErrorCode.PROVIDER_OVERLOADED, "It is overloaded.", status=529)
NATIVE = {
    "near": provider(dialect={"native_choices": True}),
    "far": provider(),
}


async def serve(home: House, *, stream: bool, **fields: Any) -> RecordedReply:
    call = called(home, stream=stream, **fields)
    reply = home.reply()
    await generate(home.gateway, call, home.sink(call, reply))
    return reply


def called(home: House, *, stream: bool, **fields: Any) -> Call:
    return Call(
        ingress_format="chat_completions",
        principal=home.principal,
        parsed=home.ingress.parse(request_body(stream=stream, **fields)),
        request_id=home.gateway.ids.new_id(),
        deadline=Deadline.within(home.gateway.clock, 600),
    )


def texts(reply: RecordedReply) -> list[str]:
    return [choice["message"]["content"] for choice in reply.json["choices"]]


def told(reply: RecordedReply) -> dict[int, str]:
    """The text of each choice of a stream."""
    said: dict[int, str] = {}
    for sent in frames(reply.body):
        for choice in sent["choices"]:
            text = said.get(choice["index"], "")
            said[choice["index"]] = text + (choice["delta"].get("content") or "")
    return said


def native(*choices: str) -> Answer:
    """One stream in which the choices take turns."""
    begun = [{"index": n, "delta": {"role": "assistant"}} for n in range(len(choices))]
    spoken = [{"index": n, "delta": {"content": text}} for n, text in enumerate(choices)]
    ended = [{"index": n, "delta": {}, "finish_reason": "stop"} for n in range(len(choices))]
    return [
        *(frame(chunk() | {"choices": [choice]}) for choice in (*begun, *spoken, *ended)),
        frame(chunk(usage=usage(10, 2 * len(choices)))),
        Frame(data=b"[DONE]"),
    ]


@pytest.mark.parametrize("stream", [True, False])
async def test_c14_choices_are_fanned_out_where_the_provider_has_none(stream: bool) -> None:
    home = await house(near=Scripted(answers("a"), answers("b"), answers("c")))
    reply = await serve(home, stream=stream, n=3)
    said = told(reply) if stream else dict(enumerate(texts(reply)))
    assert said == {0: "a", 1: "b", 2: "c"}
    assert all("n" not in sent.body for sent in home.near.requests)
    record = home.record
    assert (record.outcome, record.usage_source) == ("ok", "provider")
    # Each request has the whole prompt: three times 10 tokens at $3 and 2 at $15.
    assert (record.usage.input_tokens, record.usage.output_tokens) == (30, 6)
    assert record.cost_nano_usd == 180_000
    assert isinstance(record.raw_usage, list)
    assert len(record.raw_usage) == 3


@pytest.mark.parametrize("stream", [True, False])
async def test_c14_a_native_n_is_one_request_and_its_choices_are_told_apart(stream: bool) -> None:
    home = await house(near=Scripted(native("a", "b")), providers=NATIVE)
    reply = await serve(home, stream=stream, n=2)
    said = told(reply) if stream else dict(enumerate(texts(reply)))
    assert said == {0: "a", 1: "b"}
    (sent,) = home.near.requests
    assert sent.body["n"] == 2
    usage_ = home.record.usage
    assert (usage_.input_tokens, usage_.output_tokens) == (10, 4)


async def test_c14_c37_every_choice_has_its_own_role_and_finish_and_usage_comes_once() -> None:
    home = await house(near=Scripted(answers("a"), answers("b")))
    reply = await serve(home, stream=True, n=2)
    sent = frames(reply.body)
    roles = [c["index"] for f in sent for c in f["choices"] if "role" in c["delta"]]
    finishes = [c["index"] for f in sent for c in f["choices"] if c["finish_reason"]]
    assert sorted(roles) == sorted(finishes) == [0, 1]
    assert sum("usage" in f for f in sent) == 1
    assert sent[-1]["usage"]["completion_tokens"] == 4


async def test_c14_a_seed_gives_every_choice_a_seed_of_its_own() -> None:
    home = await house(near=Scripted(answers("a")))
    await serve(home, stream=False, n=3, seed=7)
    assert [sent.body["seed"] for sent in home.near.requests] == [7, 8, 9]


@pytest.mark.parametrize("stream", [True, False])
async def test_c14_before_the_commit_one_failure_moves_all_choices_on(stream: bool) -> None:
    home = await house(
        near=Scripted([Silence(5), *answers("a")], refuses(429)), far=Scripted(answers("b"))
    )
    reply = await serve(home, stream=stream, n=2)
    said = told(reply) if stream else dict(enumerate(texts(reply)))
    assert said == {0: "b", 1: "b"}
    assert [attempt.error for attempt in home.record.attempts] == ["provider_rate_limit", None]
    assert home.record.cost_nano_usd == 2 * 80_000


async def test_c14_the_first_choice_to_commit_fixes_the_endpoint() -> None:
    home = await house(near=Scripted([Silence(5), *answers("a")], answers("b")))
    reply = await serve(home, stream=True, n=2)
    assert told(reply) == {0: "a", 1: "b"}
    assert next(time_s for time_s, piece in reply.pieces if b'"content":"b"' in piece) < 5
    assert home.far.requests == []


@pytest.mark.parametrize("failure", [[Silence(5), BROKEN], [Silence(5), *refuses(529)]])
async def test_c14_one_choice_that_fails_fails_the_response_in_band(failure: Answer) -> None:
    home = await house(near=Scripted(answers("a"), failure))
    reply = await serve(home, stream=True, n=2)
    assert reply.status == 200
    assert reply.error["code"] == "provider_overloaded"
    assert ["choices" in frame for frame in frames(reply.body)][-2:] == [True, False]
    assert home.record.outcome == "error"
    assert home.record.cost_nano_usd == 0
    assert home.far.requests == []


async def test_c14_one_choice_that_fails_fails_a_whole_answer() -> None:
    home = await house(near=Scripted(answers("a"), [Silence(5), BROKEN]))
    reply = await serve(home, stream=False, n=2)
    assert reply.status == 529


async def test_c36_a_caller_who_leaves_ends_every_choice_and_pays_for_what_was_said() -> None:
    home = await house(near=Scripted([*says("abcdefgh"), FOREVER]))
    call = called(home, stream=True, n=2)
    reply = home.reply()
    task = asyncio.create_task(generate(home.gateway, call, home.sink(call, reply)))
    await asyncio.sleep(1)
    assert home.near.open_count == 2
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    record = home.record
    assert (record.outcome, record.usage_source) == ("cancelled", "estimated")
    assert record.usage.output_tokens == 4
    assert record.usage.input_tokens == 2 * record.trace.estimated_input_tokens


async def test_c34_each_choice_has_its_idle_limit() -> None:
    home = await house(near=Scripted(answers("a"), [*says("b"), FOREVER]))
    reply = await serve(home, stream=True, n=2)
    assert reply.error["code"] == "provider_timeout"


async def test_c30_usage_rides_the_last_finish_frame_where_that_is_asked() -> None:
    home = await house(near=Scripted(answers("a"), answers("b")))
    reply = await serve(home, stream=True, n=2, usage_on="finish")
    sent = frames(reply.body)
    assert all(f["choices"] for f in sent)
    finishes = [f for f in sent if f["choices"][0]["finish_reason"]]
    assert ["usage" in f for f in finishes] == [False, True]
    assert json.loads(reply.body.split(b"\n\n")[-3][6:])["usage"]["completion_tokens"] == 4
