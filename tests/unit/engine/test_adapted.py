"""What has no effect is named on every reply: on errors, and in the frames of a stream.

Keeps C12, C13, C20, C27.
"""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.chat_stream import MARK
from tests.gateways import House, RecordedReply, house
from tests.scripted import Scripted, Silence, answers, refuses, says
from tests.unit.routing.catalogs import endpoint, model
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.engine.gateway import StreamTiming
from tollgate.engine.generate import generate

BROKEN = UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "It broke.")
# `top_k` is refused by both rows, `novelty` is known to nobody, and neither takes reasoning back.
NAMED = ["top_k", "novelty", "messages[].reasoning"]
ASKED: dict[str, Any] = {
    "novelty": 1,
    "top_k": 5,
    "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "So.", "reasoning": "Hm."},
        {"role": "user", "content": "And?"},
    ],
}


async def asked(home: House, *, stream: bool, **more: Any) -> RecordedReply:
    content = json.dumps(ASKED | {"model": "acme/large", "stream": stream} | more).encode()
    call = replace(home.call("acme/large"), parsed=home.ingress.parse(content))
    reply = home.reply()
    await generate(home.gateway, call, home.sink(call, reply))
    return reply


def last_frame(reply: RecordedReply) -> dict[str, Any]:
    assert reply.body.endswith(MARK)
    frame: dict[str, Any] = json.loads(reply.body.split(b"\n\n")[-3].split(b"data: ")[-1])
    return frame


@pytest.mark.parametrize(
    ("limit", "sent", "named"),
    [(9_999, 9_999, False), (10_000, 10_000, False), (10_001, 10_000, True)],
)
async def test_c12_a_limit_beyond_the_models_is_capped_and_named(
    limit: int, sent: int, named: bool
) -> None:
    home = await house()
    # The cap is promised to all: it is no reason to refuse, even where every parameter is required.
    more = {"max_completion_tokens": limit, "provider": {"require_parameters": True}}
    reply = await asked(home, stream=False, top_k=None, **more)
    assert home.near.requests[-1].body["max_tokens"] == sent
    assert ("max_tokens" in reply.headers["x-tollgate-adapted"].split(", ")) == named


async def test_c12_an_endpoint_may_give_less_than_its_model() -> None:
    small = endpoint("near", "s") | {"max_output": 50}
    served = model(small, endpoint("far", "l"), max_output=500)
    home = await house(
        near=Scripted(refuses(429)), models={"acme/large": served}, aliases={}, routes={}
    )
    reply = await asked(home, stream=False, max_tokens=100, top_k=None)
    assert reply.status == 200
    assert home.near.requests[0].body["max_tokens"] == 50
    assert home.far.requests[0].body["max_tokens"] == 100
    assert "max_tokens" not in reply.headers["x-tollgate-adapted"]


@pytest.mark.parametrize("stream", [True, False])
async def test_c13_an_error_before_any_content_names_it(stream: bool) -> None:
    home = await house(near=Scripted(refuses(500)), far=Scripted(refuses(500)))
    reply = await asked(home, stream=stream)
    assert reply.status == 502
    assert reply.headers["x-tollgate-adapted"] == ", ".join(NAMED)
    assert list(home.record.adapted) == NAMED


async def test_c13_a_whole_reply_that_broke_names_it() -> None:
    home = await house(near=Scripted([*says("Hel"), BROKEN]))
    reply = await asked(home, stream=False)
    assert reply.status == 502
    assert reply.headers["x-tollgate-adapted"] == ", ".join(NAMED)


async def test_c27_a_stream_that_broke_names_it_in_its_last_frame() -> None:
    home = await house(near=Scripted([*says("Hel"), BROKEN]))
    reply = await asked(home, stream=True)
    assert reply.headers["x-tollgate-adapted"] == ", ".join(NAMED)
    assert last_frame(reply)["adapted"] == NAMED


@pytest.mark.parametrize("answered", [True, False])
async def test_c27_after_an_early_commit_the_last_frame_names_it(answered: bool) -> None:
    slow = [Silence(5), *answers("Hello")] if answered else [Silence(5), BROKEN]
    home = await house(
        near=Scripted(slow),
        far=Scripted(refuses(500)),
        timing=StreamTiming(early_commit_after_s=1),
    )
    reply = await asked(home, stream=True)
    assert reply.status == 200
    assert "x-tollgate-adapted" not in reply.headers
    assert last_frame(reply)["adapted"] == NAMED
