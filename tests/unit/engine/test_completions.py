"""C81: a legacy completion from the request to the bill, on models that chat.

Keeps C5, C26, C33, C66, C81.
"""

import json
from typing import Any

import pytest

from tests.asgi import Exchange, request
from tests.chat_stream import exact, frames
from tests.completion_stream import accumulated
from tests.gateways import Always, House, house
from tests.scripted import Answer, Scripted, answers, frame, refuses, says
from tests.unit.routing.catalogs import endpoint, model, provider
from tests.upstream import completion_chunks
from tests.upstream.openai_chunks import usage
from tests.upstream.wires import COMPLETIONS as PROMPTS
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.ingress.formats import CHAT_COMPLETIONS, COMPLETIONS
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

BROKEN = UpstreamError(ErrorCode.PROVIDER_OVERLOADED, "It is overloaded.", status=529)


async def complete(home: House, **fields: Any) -> Exchange:
    return await ask(home, COMPLETIONS.path, {"prompt": "Once", **fields})


async def ask(home: House, path: str, fields: dict[str, Any]) -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    body = {"model": "acme/large", **fields}
    return await request(
        app,
        "POST",
        f"/api{path}",
        headers={"authorization": f"Bearer {home.secret}"},
        body=json.dumps(body).encode(),
    )


async def home_of_completions(*answers_: Answer, **dialect: Any) -> House:
    """A gateway whose provider completes prompts."""
    row = provider(codec=PROMPTS.codec_name, dialect=dialect)
    return await house(
        near=Scripted(*answers_),
        codec=PROMPTS.codec,
        providers={"near": row, "far": provider()},
        models={"acme/large": model(endpoint("near", "base-1"))},
        aliases={},
        routes={},
    )


def completed(*words: str, **last: Any) -> Answer:
    """A whole answer of a provider that completes prompts."""
    said = [frame(completion_chunks.chunk(word, **last)) for word in words]
    finish = frame(completion_chunks.chunk("", finish="stop"))
    return [*said, finish, frame(completion_chunks.chunk(usage=usage(10, 2)))]


async def test_c5_c26_c66_c81_a_completion_is_billed_and_recorded_as_a_chat_is() -> None:
    home = await house(near=Scripted(answers("upon", " a")))
    reply = await complete(home)
    whole = exact(reply.body)
    assert (reply.status, whole["choices"][0]["text"]) == (200, "upon a")
    record = home.record
    assert record.ingress_format == COMPLETIONS.name
    assert whole["id"] == f"gen-{record.id}" == reply.headers["x-generation-id"]
    assert whole["usage"]["cost"] * 10**9 == record.cost_nano_usd == home.spent_nano_usd == 60_000
    (sent,) = home.near.requests
    assert sent.body["messages"] == [{"role": "user", "content": "Once"}]
    assert sent.body["max_tokens"] == 16


async def test_c37_c81_a_stream_says_the_same() -> None:
    home = await house(near=Scripted(answers("upon", " a")))
    fields: dict[str, Any] = {"prompt": ["One", "Two"], "n": 2, "echo": True}
    streamed = accumulated((await complete(home, stream=True, **fields)).body)
    whole = exact((await complete(home, **fields)).body)
    for reply in (streamed, whole):
        for own in ("id", "created", "episode_id"):
            reply.pop(own)
    assert streamed == whole
    texts = ["Oneupon a", "Oneupon a", "Twoupon a", "Twoupon a"]
    assert [choice["text"] for choice in whole["choices"]] == texts
    assert whole["usage"]["completion_tokens"] == 8


async def test_c33_c81_a_break_is_told_in_band_and_costs_nothing() -> None:
    broken: Answer = [*says("upon"), BROKEN]
    home = await house(near=Scripted(broken))
    reply = await complete(home, stream=True)
    *_, last = frames(reply.body)
    assert (reply.status, last["error"]["code"]) == (200, "provider_overloaded")
    assert "choices" not in last
    assert home.spent_nano_usd == 0


@pytest.mark.parametrize(
    ("fields", "param"),
    [({"prompt": [1, 2]}, "prompt"), ({"best_of": 3}, "best_of"), ({"suffix": "end"}, "suffix")],
)
async def test_c81_what_is_refused_has_its_field_and_costs_nothing(
    fields: dict[str, Any], param: str
) -> None:
    home = await house()
    reply = await complete(home, **fields)
    assert (reply.status, reply.json["error"]["param"]) == (400, param)
    assert home.near.requests == []
    assert home.spent_nano_usd == 0


async def test_c50_c81_another_endpoint_serves_where_the_first_is_busy() -> None:
    home = await house(near=Scripted(refuses(429)), far=Scripted(answers("upon")))
    reply = await complete(home, prompt=["One", "Two"], novelty=1)
    assert [choice["text"] for choice in reply.json["choices"]] == ["upon", "upon"]
    assert reply.headers["x-provider-used"] == "far"
    assert reply.headers["x-tollgate-adapted"] == "novelty"


async def test_c81_a_gap_is_filled_where_a_provider_fills_gaps() -> None:
    home = await home_of_completions(completed("upon", " a"), suffixes=True)
    reply = await complete(home, prompt=["One", "Two"], suffix="The end.", echo=True)
    texts = [choice["text"] for choice in reply.json["choices"]]
    assert texts == ["Oneupon a", "Twoupon a"]
    sent = [(each.body["prompt"], each.body["suffix"]) for each in home.near.requests]
    assert sent == [("One", "The end."), ("Two", "The end.")]
    assert home.record.trace.needs == ("suffix",)
    # The echo is the gateway's own: it is neither asked for nor billed.
    assert all("echo" not in each.body for each in home.near.requests)
    assert home.record.usage.output_tokens == 4


async def test_c81_log_probs_go_through_from_list_to_list() -> None:
    lists = {
        "tokens": ["upon"],
        "token_logprobs": [-0.5],
        "top_logprobs": [{"upon": -0.5, "there": -2.0}],
        "text_offset": [0],
    }
    home = await home_of_completions(completed("upon", logprobs=lists))
    reply = await complete(home, logprobs=2)
    assert reply.json["choices"][0]["logprobs"] == lists
    (sent,) = home.near.requests
    assert sent.body["logprobs"] == 2


LONG = "once " * 400


async def test_c81_a_prompt_that_is_echoed_with_its_probabilities_is_no_output() -> None:
    lists = {
        "tokens": [LONG, "upon"],
        "token_logprobs": [None, -0.5],
        "top_logprobs": [None, {"upon": -0.5}],
        "text_offset": [0, len(LONG)],
    }
    said = frame(completion_chunks.chunk(f"{LONG}upon", logprobs=lists, finish="stop"))
    home = await home_of_completions([said], echoes=True)
    reply = await complete(home, prompt=LONG, echo=True, logprobs=1)
    (choice,) = reply.json["choices"]
    assert choice["text"] == f"{LONG}upon"
    assert choice["logprobs"]["text_offset"] == [0, len(LONG)]
    assert choice["logprobs"]["token_logprobs"] == [None, -0.5]
    record = home.record
    assert (record.usage_source, record.usage.output_tokens) == ("estimated", 1)


async def test_c65_c81_an_echo_widens_no_bound() -> None:
    lie = {"prompt_tokens": 10, "completion_tokens": 10**6, "total_tokens": 10**6 + 10}
    said = frame(completion_chunks.chunk(f"{LONG}upon", finish="stop", usage=lie))
    home = await home_of_completions([said], echoes=True)
    await complete(home, prompt=LONG, echo=True, logprobs=0, max_tokens=10_000)
    assert home.record.usage_source == "bounded"
    assert home.record.usage.output_tokens == 2 * len("upon") + 1_024


async def test_c14_c81_a_native_n_is_one_request_of_each_prompt() -> None:
    def both(first: str, second: str) -> Answer:
        choices = [
            {"index": index, "text": text, "finish_reason": "stop"}
            for index, text in enumerate((first, second))
        ]
        return [frame(completion_chunks.chunk() | {"choices": choices, "usage": usage(10, 4)})]

    home = await home_of_completions(both("a", "b"), both("c", "d"), native_choices=True)
    reply = await complete(home, prompt=["One", "Two"], n=2)
    assert [choice["text"] for choice in reply.json["choices"]] == ["a", "b", "c", "d"]
    assert [sent.body["n"] for sent in home.near.requests] == [2, 2]
    assert home.record.usage.output_tokens == 8


async def test_c81_a_chat_of_one_text_is_served_and_a_conversation_refused() -> None:
    home = await home_of_completions(completed("Hello"))
    ask_ = {"messages": [{"role": "user", "content": "Say hello."}]}
    reply = await ask(home, CHAT_COMPLETIONS.path, ask_)
    assert reply.json["choices"][0]["message"]["content"] == "Hello"
    spent = home.spent_nano_usd
    ask_["messages"].insert(0, {"role": "system", "content": "Be brief."})
    refused = await ask(home, CHAT_COMPLETIONS.path, ask_)
    assert (refused.status, refused.json["error"]["param"]) == (400, "messages")
    assert len(home.near.requests) == 1
    assert home.spent_nano_usd == spent
