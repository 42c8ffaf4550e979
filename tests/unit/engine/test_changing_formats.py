"""A conversation that changes its format or its carrier half-way keeps its reasoning.

The first answer comes in one format from one carrier, with calls; its client moves the turn into
another format, adds the results, and another carrier gets it. What the signer needs back is there
where it reads it, and named where it does not.

Keeps C10, C13, C17, C80.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from tests.cells import cells
from tests.unit.engine.client_formats import (
    CHAT,
    CONVERSING,
    MESSAGE,
    RESPONSE,
    ClientFormat,
    results_of,
)
from tests.unit.engine.same_conversations import Json
from tests.unit.engine.test_signed_reasoning import (
    ANSWER,
    CARRIERS,
    PROOFS,
    SOURCES,
    home_of,
    written,
)
from tests.unit.providers.shared_cases import ANSWERS
from tollgate.core.signers import CLAUDE, OPENAI

RESULTS = results_of(ANSWER.calls)
# The fields in which each format has what the signer needs back.
NATIVE = {MESSAGE.name: CLAUDE, RESPONSE.name: OPENAI}
PACKED = "tollgate1."


@dataclass(frozen=True)
class Thought:
    """A thought as a client holds it: its text, and what came with it under chat's names."""

    text: str
    proof: Json


def thoughts_in(client: ClientFormat, reply: Json) -> Iterator[Thought]:
    match client.name:
        case CHAT.name:
            for detail in reply["choices"][0]["message"].get("reasoning_details", ()):
                proof = {
                    name: detail[name]
                    for name in ("signature", "data", "id", "format")
                    if name in detail
                }
                yield Thought(detail.get("text") or detail.get("summary") or "", proof)
        case MESSAGE.name:
            for block in reply["content"]:
                if block["type"] == "thinking":
                    signer = {} if block["signature"].startswith(PACKED) else {"format": CLAUDE}
                    yield Thought(block["thinking"], {"signature": block["signature"], **signer})
        case _:
            for item in reply["output"]:
                if item["type"] == "reasoning":
                    pieces = [*item["summary"], *item.get("content", ())]
                    sealed = item.get("encrypted_content", "")
                    own = {"id": item["id"], "format": OPENAI}
                    known = {} if sealed.startswith(PACKED) else own
                    text = "".join(piece["text"] for piece in pieces)
                    yield Thought(text, {"data": sealed, **known})


def turn_in(client: ClientFormat, thoughts: list[Thought]) -> Json:
    """The second turn in a format: the thoughts, the calls and their results."""
    calls = ANSWER.calls
    match client.name:
        case CHAT.name:
            details = [
                {"type": "reasoning.text", "index": n, "text": thought.text, **thought.proof}
                for n, thought in enumerate(thoughts)
            ]
            asked = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments or "{}"},
                }
                for call in calls
            ]
            message = {"role": "assistant", "reasoning_details": details, "tool_calls": asked}
            reply: Json = {"choices": [{"message": message}]}
        case MESSAGE.name:
            blocks = [
                {"type": "thinking", "thinking": thought.text, **_in_block(thought.proof)}
                for thought in thoughts
            ]
            uses = [
                {
                    "type": "tool_use",
                    "id": call.id,
                    "name": call.name,
                    "input": json.loads(call.arguments or "{}"),
                }
                for call in calls
            ]
            reply = {"content": [*blocks, *uses]}
        case _:
            items = [
                {
                    "type": "reasoning",
                    "summary": [{"type": "summary_text", "text": thought.text}],
                    **_in_item(thought.proof),
                }
                for thought in thoughts
            ]
            called = [
                {
                    "type": "function_call",
                    "call_id": call.id,
                    "name": call.name,
                    "arguments": call.arguments or "{}",
                }
                for call in calls
            ]
            reply = {"output": [*items, *called]}
    assert client.next_turn is not None
    return client.next_turn(reply, RESULTS)


def _in_block(proof: Json) -> Json:
    """A proof as a thinking block has it; what is packed, and Claude's own, names no signer."""
    if "format" not in proof:
        return {"signature": proof.get("signature") or proof["data"]}
    return proof if proof["format"] != CLAUDE else {"signature": proof["signature"]}


def _in_item(proof: Json) -> Json:
    moved = {**proof}
    if "data" in moved:
        moved["encrypted_content"] = moved.pop("data")
    elif "format" not in moved:
        moved["encrypted_content"] = moved.pop("signature")
    if moved.get("format") == OPENAI:
        del moved["format"]
    return moved


# One carrier of each signer, and all that read what it signed, or do not.
CHANGES = [
    (source, target)
    for source in ("anthropic", "converse", "nova", "gemini on vertex", "responses")
    for target in (
        "anthropic",
        "vertex",
        "invoke",
        "converse",
        "nova",
        "gemini",
        "gemini on vertex",
        "responses",
        "router",
    )
]


def says_what_signed(source: str, first: ClientFormat, second: ClientFormat) -> bool:
    """Whether a client can move the proof: Gemini signs calls, which only chat has room for."""
    return not (SOURCES[source] == "google-gemini-v1" and first is CHAT and second is not CHAT)


@cells(("source", "target"), CHANGES, ids=["-".join(pair) for pair in CHANGES])
@cells("first", CONVERSING, ids=lambda client: client.name)
async def test_c10_c80_reasoning_survives_a_change_of_format_and_of_carrier(
    source: str, target: str, first: ClientFormat
) -> None:
    signer, near, far = SOURCES[source], CARRIERS[source].wire, CARRIERS[target].wire
    home = await home_of(near, far, written(source), far.write(ANSWERS["text"]))
    reply = first.whole(await first.ask(home, first.question, stream=True))
    thoughts = [*thoughts_in(first, reply)]
    for second in CONVERSING:
        if second is first or not says_what_signed(source, first, second):
            continue
        turn = json.loads(json.dumps(turn_in(second, thoughts)))
        answer = await second.ask(home, turn, stream=False)
        assert answer.status == 200, answer.body
        assert answer.headers["x-provider-used"] == "far"
        sent = json.dumps(home.far.requests[-1].body)
        adapted = answer.headers.get("x-tollgate-adapted", "")
        reads = signer in CARRIERS[target].reads
        assert (PROOFS[signer] in sent) == reads, (second.name, sent, adapted)
        assert ("reasoning_details" in adapted or "extra_content" in adapted) == (not reads)
        assert PACKED not in sent
        assert all(result in sent for result in RESULTS.values())
