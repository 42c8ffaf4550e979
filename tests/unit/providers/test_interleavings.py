"""Blocks of an answer may come in pieces by turns, as far as each format's grammar lets them.

Gemini's parts come one after the other: there is nothing to interleave.

Keeps C31, C37.
"""

import json
from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.providers.shared_cases import parts_of, read
from tests.upstream import converse_events as converse
from tests.upstream import messages_events as messages
from tests.upstream import openai_chunks as chat
from tests.upstream import responses_events as responses
from tests.upstream.wires import WIRES

Pieces = Sequence[str]
# Texts of one kind may not be open at once, so that there is one of each; of calls any number.
THOUGHT, SAID = ("Let ", "me see."), ("So", ".")
arguments = st.lists(
    st.lists(st.sampled_from(["1", "2", "34"]), max_size=3), min_size=2, max_size=4
)


def as_json(pieces: Pieces) -> Pieces:
    """The pieces of a call's arguments."""
    return ["[", *(f"{piece}," for piece in pieces), "0]"]


def chat_blocks(calls: Sequence[Pieces]) -> list[list[bytes]]:
    made = []
    for index, pieces in enumerate(calls):
        first = chat.call_delta(index, id_=f"call_{index}", name=f"f{index}")
        more = [chat.call_delta(index, arguments=piece) for piece in as_json(pieces)]
        made.append([chat.sse(chat.chunk({"tool_calls": [each]})) for each in (first, *more)])
    return made


def responses_blocks(calls: Sequence[Pieces]) -> list[list[bytes]]:
    thought = [responses.added(responses.reasoning(), 0)]
    thought += [responses.summary_delta(piece, 0) for piece in THOUGHT]
    said = [responses.text_delta(piece, 1) for piece in SAID]
    made = [thought, said]
    for index, pieces in enumerate(calls):
        begun = responses.added(responses.call("", f"call_{index}", f"f{index}"), index + 2)
        written = [responses.arguments_delta(piece, index + 2) for piece in as_json(pieces)]
        made.append([begun, *written])
    return made


def messages_blocks(calls: Sequence[Pieces]) -> list[list[bytes]]:
    thought = [messages.block(0, type="thinking", thinking="")]
    thought += [messages.delta(0, "thinking_delta", thinking=piece) for piece in THOUGHT]
    said = [messages.text(1), *(messages.words(piece, 1) for piece in SAID)]
    made = [thought, said]
    for index, pieces in enumerate(calls):
        begun = messages.tool(index + 2, f"call_{index}", f"f{index}")
        written = [messages.arguments(piece, index + 2) for piece in as_json(pieces)]
        made.append([begun, *written])
    return [
        [json.dumps(event).encode() for event in (*block, messages.block_stop(index))]
        for index, block in enumerate(made)
    ]


def converse_blocks(calls: Sequence[Pieces]) -> list[list[bytes]]:
    made = [
        [converse.reasoning_delta(0, text=piece) for piece in THOUGHT],
        [converse.text_delta(piece, 1) for piece in SAID],
    ]
    for index, pieces in enumerate(calls):
        begun = converse.tool_start(index + 2, f"call_{index}", f"f{index}")
        written = [converse.tool_delta(index + 2, piece) for piece in as_json(pieces)]
        made.append([begun, *written])
    return [[*block, converse.block_stop(index)] for index, block in enumerate(made)]


FORMATS: dict[str, tuple[Callable[[Sequence[Pieces]], list[list[bytes]]], list[bytes]]] = {
    "openai_chat": (chat_blocks, [chat.sse(chat.chunk({}, finish="tool_calls"))]),
    "openai_responses": (responses_blocks, [responses.completed()]),
    "anthropic": (
        messages_blocks,
        [json.dumps(each).encode() for each in (messages.message_delta("tool_use"), messages.STOP)],
    ),
    "bedrock": (converse_blocks, [converse.message_stop("tool_use"), converse.metadata()]),
}
BEGINNINGS = {
    "openai_responses": [responses.created()],
    "anthropic": [json.dumps(messages.start()).encode()],
    "bedrock": [converse.message_start()],
}


def by_turns(blocks: list[list[bytes]], chance: Random) -> list[bytes]:
    """All events, those of each block in their order."""
    left = [[*block] for block in blocks]
    events: list[bytes] = []
    while left := [block for block in left if block]:
        events.append(chance.choice(left).pop(0))
    return events


@pytest.mark.parametrize("name", FORMATS)
@given(calls=arguments, chance=st.randoms())
def test_c31_blocks_that_come_by_turns_are_told_apart(
    name: str, calls: list[list[str]], chance: Random
) -> None:
    blocks, end = FORMATS[name]
    [wire] = (each for each in WIRES if each.name == name)
    events = [*BEGINNINGS.get(name, ()), *by_turns(blocks(calls), chance), *end]
    response = read(wire, [wire.body(events)])
    assert response.finish == "tool_calls"
    texts = (
        [] if name == "openai_chat" else [("reasoning", "".join(THOUGHT)), ("text", "".join(SAID))]
    )
    asked = [
        ("call", (f"call_{index}", f"f{index}", json.loads("".join(as_json(pieces)))))
        for index, pieces in enumerate(calls)
    ]
    # Chunks of chat completions have no blocks: there only calls come by turns.
    whole = asked if name == "openai_chat" else [*texts, *asked]
    assert sorted(parts_of(response), key=repr) == sorted(whole, key=repr)
