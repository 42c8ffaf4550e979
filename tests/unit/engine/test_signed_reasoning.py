"""Reasoning goes back to whoever carries its signer, and what nobody can read is named.

An answer of one endpoint is sent back by its client; then that endpoint is busy, and another one
gets the conversation. Every signer meets every carrier.

Keeps C10, C13, C17.
"""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cells import cells
from tests.chat_stream import accumulated, exact
from tests.gateways import House, house
from tests.scripted import Scripted
from tests.unit.engine.test_every_format import QUESTION, asked, framed, second_turn
from tests.unit.providers.shared_cases import ANSWERS
from tests.unit.routing.catalogs import endpoint, model, provider
from tests.upstream import converse_events as converse
from tests.upstream import messages_events as messages
from tests.upstream import openai_chunks as chat
from tests.upstream.gemini_chunks import SIGNATURE
from tests.upstream.wires import WIRES, Wire
from tollgate.core.signers import BEDROCK, CLAUDE, GEMINI, OPENAI

BY_NAME = {wire.name: wire for wire in WIRES}
ANSWER = ANSWERS["parallel_tools"]
# The signer of an account whose signatures no other host reads.
OWN = "acme-claude-v1"
# The data by which each signer knows its own.
PROOFS = {OWN: "c2ln", CLAUDE: "c2ln", BEDROCK: "c2ln", GEMINI: SIGNATURE, OPENAI: "gAAA"}


def wire_of(name: str, **dialect: Any) -> Wire:
    wire = BY_NAME[name]
    return dataclasses.replace(wire, dialect=wire.dialect.model_copy(update=dialect))


def router_of(signer: str | None = None) -> Wire:
    return wire_of("openai_chat", reasoning_field="reasoning_details", signer=signer)


@dataclass(frozen=True)
class Carrier:
    """An endpoint, and the signers whose reasoning it takes back."""

    wire: Wire
    reads: frozenset[str]


CARRIERS = {
    "anthropic": Carrier(BY_NAME["anthropic"], frozenset({CLAUDE})),
    "vertex": Carrier(BY_NAME["anthropic_vertex"], frozenset({CLAUDE})),
    "invoke": Carrier(BY_NAME["bedrock_invoke"], frozenset({CLAUDE})),
    "converse": Carrier(wire_of("bedrock", reasoning="claude_adaptive"), frozenset({CLAUDE})),
    "nova": Carrier(wire_of("bedrock", reasoning="nova"), frozenset({BEDROCK})),
    "router": Carrier(router_of(), frozenset(PROOFS)),
    "router to claude": Carrier(router_of(CLAUDE), frozenset({CLAUDE})),
    "gemini": Carrier(BY_NAME["gemini"], frozenset({GEMINI})),
    "gemini on vertex": Carrier(BY_NAME["gemini_vertex"], frozenset({GEMINI})),
    "responses": Carrier(BY_NAME["openai_responses"], frozenset({OPENAI})),
    "azure": Carrier(wire_of("openai_responses", signer="azure-openai-responses-v1"), frozenset()),
    "plain text": Carrier(BY_NAME["openai_chat"], frozenset()),
    "nothing": Carrier(wire_of("openai_chat", reasoning_field=None), frozenset()),
}
# Accounts whose signatures no other host reads.
CARRIERS |= {
    "own anthropic": Carrier(wire_of("anthropic", signer=OWN), frozenset({OWN})),
    "own converse": Carrier(wire_of("bedrock", signer=OWN), frozenset({OWN})),
}
# The carrier of each signer's first answer; a router's is written below.
SOURCES = {
    "anthropic": CLAUDE,
    "vertex": CLAUDE,
    "invoke": CLAUDE,
    "converse": CLAUDE,
    "router to claude": CLAUDE,
    "own anthropic": OWN,
    "own converse": OWN,
    "nova": BEDROCK,
    "gemini": GEMINI,
    "gemini on vertex": GEMINI,
    "responses": OPENAI,
}


def in_details(signer: str) -> list[bytes]:
    """The answer as a router streams it, in details."""
    text = {"type": "reasoning.text", "format": signer, "index": 0, "signature": ""}
    pieces = [text | {"text": "Tw"}, text | {"text": "o."}, text | {"signature": PROOFS[signer]}]
    role, _, *rest = BY_NAME["openai_chat"].write(ANSWER)
    return [role, *(chat.sse(chat.chunk({"reasoning_details": [each]})) for each in pieces), *rest]


def written(source: str) -> list[bytes]:
    wire = CARRIERS[source].wire
    return in_details(SOURCES[source]) if "router" in source else wire.write(ANSWER)


async def home_of(near: Wire, far: Wire, events: list[bytes], further: list[bytes]) -> House:
    """A model whose first endpoint answers once and is busy from then on."""
    busy = [near.rate_limited]
    rows = {
        "near": provider(dialect=near.dialect.model_dump(exclude_unset=True), **near.place),
        "far": provider(dialect=far.dialect.model_dump(exclude_unset=True), **far.place),
    }
    supports = ("prompt_cache", "reasoning", "structured_output", "tools")
    return await house(
        near=Scripted(framed(near, events), busy),
        far=Scripted(framed(far, further)),
        codec=near.codec,
        far_codec=far.codec,
        providers=rows,
        models={
            "acme/large": model(endpoint("near", "m-1"), endpoint("far", "m-2"), supports=supports)
        },
        aliases={},
        routes={},
    )


@cells("stream", [True, False])
@cells("target", CARRIERS)
@cells("source", SOURCES)
async def test_c10_reasoning_goes_to_every_carrier_of_its_signer_and_to_no_other(
    source: str, target: str, stream: bool
) -> None:
    signer, near, far = SOURCES[source], CARRIERS[source].wire, CARRIERS[target].wire
    home = await home_of(near, far, written(source), far.write(ANSWERS["text"]))
    first = await asked(home, QUESTION, stream=stream)
    reply = accumulated(first.body) if stream else exact(first.body)
    second = await asked(home, second_turn(reply["choices"][0]["message"]), stream=stream)
    assert (second.status, second.headers["x-provider-used"]) == (200, "far")
    sent = json.dumps(home.far.requests[-1].body)
    adapted = second.headers.get("x-tollgate-adapted", "")
    assert (PROOFS[signer] in sent) == (signer in CARRIERS[target].reads)
    named = "reasoning_details" in adapted or "extra_content" in adapted
    assert named == (signer not in CARRIERS[target].reads)


@pytest.mark.parametrize("target", CARRIERS)
async def test_c10_plain_reasoning_is_sent_where_text_is_read_and_named_elsewhere(
    target: str,
) -> None:
    far = CARRIERS[target].wire
    home = await home_of(far, far, far.write(ANSWERS["text"]), far.write(ANSWERS["text"]))
    said = {"role": "assistant", "content": "So.", "reasoning": "I ponder."}
    more = [*QUESTION["messages"], said, {"role": "user", "content": "And?"}]
    reply = await asked(home, {"messages": more}, stream=True)
    reads = target.startswith("router") or target == "plain text"
    assert ("I ponder." in json.dumps(home.near.requests[-1].body)) == reads
    adapted = reply.headers.get("x-tollgate-adapted", "")
    assert ("messages[].reasoning" in adapted) == (not reads)


async def test_c10_reasoning_of_one_claude_is_named_where_another_serves() -> None:
    claude = BY_NAME["anthropic"]
    home = await home_of(claude, claude, written("anthropic"), claude.write(ANSWERS["text"]))
    first = exact((await asked(home, QUESTION, stream=False)).body)
    message = first["choices"][0]["message"]
    [detail] = message["reasoning_details"]
    assert detail["model"] == "acme/large"
    detail["model"] = "acme/huge"
    second = await asked(home, second_turn(message), stream=False)
    assert "c2ln" not in json.dumps(home.far.requests[-1].body)
    assert second.headers["x-tollgate-adapted"] == "messages[].reasoning_details"


CONVERSED = [
    converse.message_start(),
    converse.reasoning_delta(0, text="Two."),
    converse.reasoning_delta(0, signature="c2ln"),
    converse.block_stop(0),
    # Bedrock wraps the base64 of Claude in base64 of its own.
    converse.reasoning_delta(1, redactedContent="RXJB"),
    converse.block_stop(1),
    converse.text_delta("I look.", 2),
    converse.block_stop(2),
    converse.reasoning_delta(3, text="Hm."),
    converse.reasoning_delta(3, signature="c2ln2"),
    converse.block_stop(3),
    converse.tool_start(4, "call_1", "weather"),
    converse.tool_delta(4, "{}"),
    converse.block_stop(4),
    converse.reasoning_delta(5, text="More."),
    converse.reasoning_delta(5, signature="c2ln3"),
    converse.block_stop(5),
    converse.tool_start(6, "call_2", "now"),
    converse.tool_delta(6, "{}"),
    converse.block_stop(6),
    converse.message_stop("tool_use"),
    converse.metadata(9, 3),
]
TURN = [
    {"type": "thinking", "thinking": "Two.", "signature": "c2ln"},
    {"type": "redacted_thinking", "data": "ErA"},
    {"type": "text", "text": "I look."},
    {"type": "thinking", "thinking": "Hm.", "signature": "c2ln2"},
    {"type": "tool_use", "id": "call_1", "name": "weather", "input": {}},
    {"type": "thinking", "thinking": "More.", "signature": "c2ln3"},
    {"type": "tool_use", "id": "call_2", "name": "now", "input": {}},
]


@pytest.mark.parametrize("stream", [True, False])
async def test_c10_a_tool_loop_that_falls_from_bedrock_to_anthropic_goes_on_thinking(
    stream: bool,
) -> None:
    near = wire_of("bedrock", reasoning="claude_budget")
    far = BY_NAME["anthropic"]
    home = await home_of(near, far, CONVERSED, far.write(ANSWERS["text"]))
    thinking = {"reasoning": {"effort": "high"}, "max_tokens": 8_000}
    first = await asked(home, QUESTION | thinking, stream=stream)
    reply = accumulated(first.body) if stream else exact(first.body)
    looped = second_turn(reply["choices"][0]["message"]) | thinking
    second = await asked(home, looped, stream=stream)
    sent: Any = home.far.requests[-1].body
    assert sent["thinking"]["type"] == "enabled"
    assert sent["messages"][1]["content"] == TURN
    assert "x-tollgate-adapted" not in second.headers


async def test_c10_a_tool_loop_that_falls_from_anthropic_to_bedrock_is_the_same_turn() -> None:
    near, far = BY_NAME["anthropic"], wire_of("bedrock", reasoning="claude_budget")
    events = [messages.start()]
    for index, block in enumerate(TURN):
        events += [messages.block(index, **block), messages.block_stop(index)]
    events += [messages.message_delta("tool_use"), messages.STOP]
    sent_so = [json.dumps(event).encode() for event in events]
    home = await home_of(near, far, sent_so, far.write(ANSWERS["text"]))
    first = await asked(home, QUESTION, stream=True)
    await asked(home, second_turn(accumulated(first.body)["choices"][0]["message"]), stream=True)
    sent: Any = home.far.requests[-1].body
    blocks = sent["messages"][1]["content"]
    assert [next(iter(block)) for block in blocks] == [
        "reasoningContent",
        "reasoningContent",
        "text",
        "reasoningContent",
        "toolUse",
        "reasoningContent",
        "toolUse",
    ]
    assert blocks[1] == {"reasoningContent": {"redactedContent": "RXJB"}}


@pytest.mark.parametrize("stream", [True, False])
async def test_c17_include_reasoning_false_leaves_it_out(stream: bool) -> None:
    claude = BY_NAME["anthropic"]
    home = await home_of(claude, claude, written("anthropic"), claude.write(ANSWERS["text"]))
    reply = await asked(home, QUESTION | {"include_reasoning": False}, stream=stream)
    assert b"reasoning_details" not in reply.body
    assert b"Two." not in reply.body
    assert "x-tollgate-adapted" not in reply.headers
