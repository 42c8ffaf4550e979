"""Claude compacts by itself for clients of Messages; its block goes out and comes back unchanged.

Keeps C75.
"""

import json
from typing import Any

import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house
from tests.scripted import Scripted, frame
from tests.upstream import messages_events as sent
from tollgate.providers.ports.formats import codec_of
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

BETA = "compact-2026-01-12"
EDITS = {"edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 1}}]}
BLOCK = {"type": "compaction", "content": "Goal: a bridge.", "encrypted_content": "c2VhbA=="}
PAUSED = [
    sent.start(),
    sent.block(0, type="compaction", content=None, encrypted_content=None),
    sent.delta(0, "compaction_delta", content=BLOCK["content"], encrypted_content="c2VhbA=="),
    sent.block_stop(),
    sent.message_delta(
        "compaction",
        iterations=[{"type": "compaction", "input_tokens": 20, "output_tokens": 5}],
    ),
    sent.STOP,
]


LATE = {
    "edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}]
}


async def ask(
    home: House, messages: list[Any], *, stream: bool, edits: dict[str, Any] = EDITS
) -> Exchange:
    body = {
        "model": "acme/large",
        "max_tokens": 99,
        "messages": messages,
        "context_management": edits,
        "stream": stream,
    }
    return await request(
        chat_app(home.front, Always(home.gateway), WebLimits()),
        "POST",
        "/v1/messages",
        headers={"x-api-key": home.secret, "anthropic-beta": BETA},
        body=json.dumps(body).encode(),
    )


@pytest.mark.parametrize("stream", [True, False])
async def test_c75_claudes_own_compaction_passes_both_ways(stream: bool) -> None:
    home = await house(
        near=Scripted([frame(event) for event in PAUSED]), codec=codec_of("anthropic")
    )
    first: dict[str, Any] = {"role": "user", "content": "Draw a bridge."}
    reply = await ask(home, [first], stream=stream)
    assert reply.status == 200, reply.body
    upstream: Any = home.near.requests[0].body
    assert upstream["context_management"] == EDITS
    if stream:
        frames = [piece.split(b"data: ")[1] for piece in reply.body.split(b"\n\n") if piece]
        events = [json.loads(each) for each in frames]
        [start] = [each for each in events if each["type"] == "content_block_start"]
        assert start["content_block"] == BLOCK | {"content": None, "encrypted_content": None}
        [delta] = [each["delta"] for each in events if each["type"] == "content_block_delta"]
        assert delta == BLOCK | {"type": "compaction_delta"}
        [end] = [each for each in events if each["type"] == "message_delta"]
        assert end["delta"]["stop_reason"] == "compaction"
    else:
        assert reply.json["content"] == [BLOCK]
        assert reply.json["stop_reason"] == "compaction"
    # 9 and 20 tokens read, 3 and 5 written.
    usage = home.record.usage
    assert (usage.input_tokens, usage.output_tokens) == (29, 8)
    await ask(home, [first, {"role": "assistant", "content": [BLOCK]}, first], stream=stream)
    upstream = home.near.requests[1].body
    # Anthropic drops what is before the block, so it does not count for limits either.
    assert [each["role"] for each in upstream["messages"]] == ["assistant", "user"]
    assert upstream["messages"][0]["content"] == [BLOCK]


async def test_c75_other_models_go_on_from_the_text_of_claudes_compaction() -> None:
    home = await house()
    reply = await ask(
        home,
        [
            {"role": "user", "content": "Draw a bridge."},
            {"role": "assistant", "content": [BLOCK, {"type": "text", "text": "Done."}]},
            {"role": "user", "content": "Longer."},
        ],
        stream=False,
        edits=LATE,
    )
    assert reply.status == 200, reply.body
    upstream: Any = home.near.requests[0].body
    texts = [each["content"] for each in upstream["messages"]]
    assert texts[0].endswith("Goal: a bridge.")
    assert (texts[1:], upstream["messages"][0]["role"]) == (["Done.", "Longer."], "user")
    assert "messages[].reasoning_details" in reply.headers["x-tollgate-adapted"]


async def test_c75_on_other_models_the_edits_are_named() -> None:
    home = await house()
    reply = await ask(home, [{"role": "user", "content": "Draw a bridge."}], stream=False)
    assert "context_management" in reply.headers["x-tollgate-adapted"]
