"""C56: an analyzer's findings are blocked, masked and flagged, whole and in pieces.

Keeps C56, C58.
"""

import json
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from tests.gateways import House
from tests.scripted import FOREVER, Scripted, answers, calls, ends, frame, refuses
from tests.unit.engine.guardrails.analyzers import NAMES, Analyzer, analyzed, found
from tests.unit.engine.guardrails.homes import ask, sent_messages, text_of
from tollgate.core.errors import AccessError
from tollgate.engine.generate import generate
from tollgate.engine.guardrails.analyses import clip
from tollgate.engine.guardrails.patterns import Match

FRAMES = ("{}", "It is {}.", "a\n{}\nb", "🎈🎈 {} {}", "e\u0301«{}»", "[x_1] {}")
TOOLS = [{"type": "function", "function": {"name": "pay", "parameters": {"type": "object"}}}]


def marked(text: str) -> str:
    """The text as an answer has it, without any finding."""
    for match in reversed(found(text)):
        mark = f"[{match['entity_type'].lower()}]"
        text = text[: match["start"]] + mark + text[match["end"] :]
    return text


@pytest.mark.parametrize("size", [1, 7, 130, 10_000])
async def test_c56_no_finding_passes_however_an_answer_is_cut(size: int) -> None:
    texts = [frame_.format(name, name) for name, frame_ in product(NAMES, FRAMES)]
    said = ("." * 97).join(texts)
    pieces = [said[begin : begin + size] for begin in range(0, len(said), size)]
    home = await analyzed(answers(*pieces), action="mask", stages=("output",), window=128)
    assert text_of(await ask(home, stream=True)) == marked(said)
    assert home.record.judgements[0].findings == ("person", "phone_number")
    # Each call reads a bounded text, and each character is read at most a few times.
    sizes = [len(text) for text in home.far.texts]  # type: ignore[attr-defined]
    assert max(sizes) <= 8_000
    assert sum(sizes) < 3 * len(said)


async def test_c56_a_blocked_answer_ends_before_the_finding() -> None:
    said = "x" * 300 + NAMES[0] + "y" * 300
    pieces = [said[begin : begin + 5] for begin in range(0, len(said), 5)]
    home = await analyzed(answers(*pieces), stages=("output",), window=128)
    shown = text_of(await ask(home, stream=True))
    assert shown == "x" * len(shown)
    assert home.record.judgements[0].verdict == "block"


@pytest.mark.parametrize("stream", [False, True])
async def test_c56_masks_of_input_are_restored(stream: bool) -> None:
    said = answers("Hello [per", "son_1], [person_2]!")
    home = await analyzed(said, action="mask", restores=True)
    asked = f"🎈 {NAMES[0]} and {NAMES[1]}, {NAMES[0]}"
    reply = await ask(home, asked, stream=stream)
    assert text_of(reply) == f"Hello {NAMES[0]}, {NAMES[1]}!"
    assert sent_messages(home.near)[0]["content"] == "🎈 [person_1] and [person_2], [person_1]"
    assert home.record.judgements[0].verdict == "mask"
    # Free of charge, so the bill has no line for it.
    assert not [line for line in home.record.lines if line.item.startswith("guardrail_")]


async def test_c56_refused_and_flagged_input() -> None:
    home = await analyzed(stages=("input",))
    reply = await ask(home, f"I am {NAMES[0]}")
    assert (reply.status, reply.error["code"]) == (400, "content_filter")
    assert "people refused the input: person" in reply.error["message"]
    assert home.near.requests == []
    home = await analyzed(action="flag", stages=("input",))
    assert (await ask(home, f"I am {NAMES[0]}")).status == 200
    assert home.record.judgements[0].verdict == "flag"
    assert home.record.judgements[0].findings == ("person",)


async def test_c56_the_analyzer_gets_what_the_row_states() -> None:
    home = await analyzed(entities=("PERSON",), score_min=0.4, stages=("input",))
    await ask(home, "Hi")
    (request,) = home.far.requests
    assert request.path == "/analyze"
    assert request.body == {
        "text": "Hi",
        "language": "en",
        "entities": ["PERSON"],
        "score_threshold": 0.4,
    }


async def test_c56_a_finding_split_over_parts_or_in_a_name_is_refused() -> None:
    parts = [{"type": "text", "text": each} for each in ("I am Ada Love", "lace.")]
    home = await analyzed(action="mask", stages=("input",))
    assert (await ask(home, parts)).status == 400
    assert (await ask(home, "Hi", stop=[NAMES[0]])).status == 400
    assert home.near.requests == []


@pytest.mark.parametrize("stream", [False, True])
async def test_c56_arguments_of_calls_remain_json(stream: bool) -> None:
    arguments = json.dumps({"to": NAMES[1], "n": 1, "list": [f"x {NAMES[0]}"]})
    home = await analyzed(
        [*calls("pay", arguments), *ends("tool_calls")],
        action="mask",
        restores=True,
        stages=("input", "tool_arguments"),
    )
    reply = await ask(home, "Pay", tools=TOOLS)
    message = reply.json["choices"][0]["message"]
    (call,) = message["tool_calls"]
    masked = {"to": "[person]", "n": 1, "list": ["x [person]"]}
    assert json.loads(call["function"]["arguments"]) == masked
    call["function"]["arguments"] = arguments
    result = {"role": "tool", "tool_call_id": "call-1", "content": "Paid"}
    turns = [{"role": "user", "content": "Pay"}, message, result]
    assert (await ask(home, messages=turns, tools=TOOLS, stream=stream)).status == 200
    sent = sent_messages(home.near, 1)[1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"to": "[person_1]", "n": 1, "list": ["x [person_2]"]}


OUTSIDE = {"entity_type": "PERSON", "start": 0, "end": 99, "score": 1}


@pytest.mark.parametrize(
    "failing",
    [
        refuses(500),
        [FOREVER],
        [frame({"error": "No"})],
        [frame([OUTSIDE])],
        [frame([{**OUTSIDE, "end": 0}])],
        [frame([{**OUTSIDE, "start": -1, "end": 1}])],
        [frame([{**OUTSIDE, "end": 1, "entity_type": "]["}])],
    ],
)
@pytest.mark.parametrize("stage", ["input", "output"])
@pytest.mark.parametrize("action", ["block", "mask", "flag"])
async def test_c56_an_analyzer_without_an_answer_refuses(
    failing: Any, stage: str, action: str
) -> None:
    home = await analyzed(
        answers("hush"), far=Scripted(failing), action=action, stages=(stage,), timeout_s=2.0
    )
    reply = await ask(home)
    assert (reply.status, reply.error["code"]) == (502, "provider_unavailable")
    assert b"hush" not in reply.body
    assert home.record.judgements[0].verdict == "failed"
    assert home.spent_nano_usd == 0
    assert stage == "output" or home.near.requests == []


async def test_c58_an_analyzer_that_states_no_prompt_use_is_left_out() -> None:
    home: House = await analyzed(stages=("input",))
    principal = replace(home.principal, key_policy="no_training")
    call = replace(home.call("acme/large", stream=False), principal=principal)
    with pytest.raises(AccessError):
        await generate(home.gateway, call, home.sink(call, home.reply()))
    assert home.far.requests == []


async def test_c56_each_text_is_analyzed_once_and_whatever_its_length() -> None:
    home = await analyzed(stages=("input",), action="mask")
    long = "x" * 7_995 + NAMES[0] + "y" * 9_000
    await ask(home, long)
    assert NAMES[0] not in sent_messages(home.near)[0]["content"]
    assert isinstance(home.far, Analyzer)
    assert [len(text) for text in home.far.texts] == [8_000, 8_000, len(long) - 15_200]


def test_matches_are_clipped_to_spans() -> None:
    matches = [Match(0, 4, "a"), Match(6, 9, "b")]
    assert clip(matches, [(1, 2), (3, 7), (9, 10), (5, 5)]) == [
        Match(1, 2, "a"),
        Match(3, 4, "a"),
        Match(6, 7, "b"),
    ]
