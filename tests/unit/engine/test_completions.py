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
from tests.scripted import Answer, Scripted, answers, refuses, says
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.ingress.formats import COMPLETIONS
from tollgate.web.chat_app import chat_app
from tollgate.web.cors import WebLimits

BROKEN = UpstreamError(ErrorCode.PROVIDER_OVERLOADED, "It is overloaded.", status=529)


async def complete(home: House, **fields: Any) -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    body = {"model": "acme/large", "prompt": "Once", **fields}
    return await request(
        app,
        "POST",
        "/api/v1/completions",
        headers={"authorization": f"Bearer {home.secret}"},
        body=json.dumps(body).encode(),
    )


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
