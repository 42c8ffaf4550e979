"""For clients of Messages, the gateway clears what Claude's API would clear by itself.

Keeps C75.
"""

import json
from base64 import b64encode
from typing import Any

import pytest

from tests.asgi import Exchange
from tests.compacting import RECORD
from tests.gateways import House, house
from tests.scripted import Scripted, answers, frame, refuses
from tests.unit.routing.catalogs import provider
from tests.unit.web.test_message_compaction import ask, events_of
from tests.upstream import messages_events
from tollgate.core.content import Reasoning, ToolCall
from tollgate.ingress.messages.parse import parse_request
from tollgate.providers.ports.formats import codec_of
from tollgate.routing.planning.prompt_size import PromptSize

USES = "clear_tool_uses_20250919"
THINKING = "clear_thinking_20251015"
PLACEHOLDER = "[The result of this tool call was removed to save space.]"
LONG = "word " * 400
PNG = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(90_000)).decode()
OVER_ONE: dict[str, Any] = {"trigger": {"type": "tool_uses", "value": 1}}
MIXED = {
    "near": provider(codec="openai_chat", key={"env": "NEAR_API_KEY", "secret": "tollgate/near"}),
    "far": provider(codec="anthropic"),
}


def turn(number: int, tool: str = "read") -> list[dict[str, Any]]:
    """A question that was answered after some thinking and one tool use."""
    call = {"type": "tool_use", "id": "call", "name": tool, "input": {"page": number}}
    result = {"type": "tool_result", "tool_use_id": "call", "content": f"{number} {LONG}"}
    thought = {"type": "thinking", "thinking": f"Thought {number}.", "signature": "s"}
    return [
        {"role": "user", "content": f"Read page {number}."},
        {"role": "assistant", "content": [thought, call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": f"Page {number} is read."},
    ]


HISTORY = [*turn(1), *turn(2, "look"), *turn(3), *turn(4), {"role": "user", "content": "And?"}]


async def edit(home: House, *edits: dict[str, Any], **fields: Any) -> Exchange:
    return await ask(home, HISTORY, context_management={"edits": list(edits)}, **fields)


def sent(home: House, number: int = 0) -> list[dict[str, Any]]:
    body: Any = home.far.requests[number].body
    return list(body["messages"])


def results(messages: list[dict[str, Any]]) -> list[str]:
    texts = [each["content"] for each in messages if each["role"] == "tool"]
    return [text if text == PLACEHOLDER else text.split()[0] for text in texts]


def inputs(messages: list[dict[str, Any]]) -> list[Any]:
    calls = [call for each in messages for call in each.get("tool_calls", ())]
    return [json.loads(call["function"]["arguments"]).get("page") for call in calls]


def applied(reply: Exchange) -> Any:
    return reply.json["context_management"]["applied_edits"]


@pytest.mark.parametrize("stream", [False, True])
async def test_c75_old_results_of_tools_are_cleared_and_reported(stream: bool) -> None:
    home = await house()
    keep = {"type": "tool_uses", "value": 2}
    reply = await edit(home, {"type": USES, "keep": keep, **OVER_ONE}, stream=stream)
    assert reply.status == 200, reply.body
    assert results(sent(home)) == [PLACEHOLDER, PLACEHOLDER, "3", "4"]
    assert inputs(sent(home)) == [1, 2, 3, 4]
    if stream:
        [delta] = [each for each in events_of(reply) if each["type"] == "message_delta"]
        [report] = delta["context_management"]["applied_edits"]
        assert delta["delta"]["stop_reason"] == "end_turn"
    else:
        [report] = applied(reply)
        assert "context_management" not in reply.headers["x-tollgate-adapted"].split(", ")
    assert (report["type"], report["cleared_tool_uses"]) == (USES, 2)
    assert 900 < report["cleared_input_tokens"] < 1_100
    # Clearing is no generation: there is one bill.
    assert len(home.stores.books.records) == 1


@pytest.mark.parametrize(
    ("fields", "cleared", "pages"),
    [
        ({}, [PLACEHOLDER, "2", "3", "4"], [1, 2, 3, 4]),
        ({"keep": {"type": "tool_uses", "value": 0}}, [PLACEHOLDER] * 4, [1, 2, 3, 4]),
        ({"keep": {"type": "tool_uses", "value": 9}}, ["1", "2", "3", "4"], [1, 2, 3, 4]),
        ({"trigger": {"type": "tool_uses", "value": 4}}, ["1", "2", "3", "4"], [1, 2, 3, 4]),
        (
            {"trigger": {"type": "input_tokens", "value": 1_000}},
            [PLACEHOLDER, "2", "3", "4"],
            [1, 2, 3, 4],
        ),
        (
            {"trigger": {"type": "input_tokens", "value": 9_000}},
            ["1", "2", "3", "4"],
            [1, 2, 3, 4],
        ),
        (
            {"clear_at_least": {"type": "input_tokens", "value": 400}},
            [PLACEHOLDER, "2", "3", "4"],
            [1, 2, 3, 4],
        ),
        (
            {"clear_at_least": {"type": "input_tokens", "value": 600}},
            ["1", "2", "3", "4"],
            [1, 2, 3, 4],
        ),
        (
            {"keep": {"type": "tool_uses", "value": 1}, "exclude_tools": ["look"]},
            [PLACEHOLDER, "2", PLACEHOLDER, "4"],
            [1, 2, 3, 4],
        ),
        ({"clear_tool_inputs": True}, [PLACEHOLDER, "2", "3", "4"], [None, 2, 3, 4]),
        (
            {"keep": {"type": "tool_uses", "value": 1}, "clear_tool_inputs": ["look"]},
            [PLACEHOLDER, PLACEHOLDER, PLACEHOLDER, "4"],
            [1, None, 3, 4],
        ),
    ],
)
async def test_c75_the_fields_of_the_edit_decide_which_results_are_cleared(
    fields: dict[str, Any], cleared: list[str], pages: list[int | None]
) -> None:
    home = await house()
    reply = await edit(home, {"type": USES, **OVER_ONE, **fields})
    assert results(sent(home)) == cleared
    assert inputs(sent(home)) == pages
    assert ("context_management" in reply.json) == (PLACEHOLDER in cleared)


async def test_c75_short_conversations_of_messages_are_not_cleared() -> None:
    home = await house()
    reply = await edit(home, {"type": USES})
    assert results(sent(home)) == ["1", "2", "3", "4"]
    assert "context_management" not in reply.json


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({}, [4]),
        ({"keep": {"type": "thinking_turns", "value": 3}}, [2, 3, 4]),
        ({"keep": "all"}, [1, 2, 3, 4]),
        ({"keep": {"type": "all"}}, [1, 2, 3, 4]),
    ],
)
def test_c75_the_thinking_of_earlier_answers_is_dropped(
    fields: dict[str, Any], kept: list[int]
) -> None:
    management = {"edits": [{"type": THINKING, **fields}]}
    body = {"model": "m", "max_tokens": 9, "messages": HISTORY, "context_management": management}
    parsed = parse_request(json.dumps(body).encode())
    if len(kept) == 4:
        assert parsed.edits is None
        return
    assert parsed.edits is not None
    edited = parsed.edits(parsed.request, lambda request: PromptSize.of(request).estimate)
    assert edited is not None
    parts = [part for each in edited.request.messages for part in each.content]
    thoughts = [part.text for part in parts if isinstance(part, Reasoning)]
    assert thoughts == [f"Thought {number}." for number in kept]
    assert sum(isinstance(part, ToolCall) for part in parts) == 4
    assert edited.request.size_bytes < parsed.request.size_bytes
    report: Any = edited.report.fields["context_management"]
    [applied_edit] = report["applied_edits"]
    assert (applied_edit["type"], applied_edit["cleared_thinking_turns"]) == (
        THINKING,
        4 - len(kept),
    )


async def test_c75_thinking_is_cleared_before_tool_uses_and_both_are_reported() -> None:
    home = await house()
    reply = await edit(home, {"type": THINKING}, {"type": USES, **OVER_ONE})
    assert [each["type"] for each in applied(reply)] == [THINKING, USES]
    for repeated in ({"type": THINKING}, {"type": USES}):
        reply = await edit(home, {"type": USES}, repeated)
        assert reply.status == 400
        assert reply.json["error"]["param"] == "context_management.edits[1].type"


async def test_c75_a_conversation_that_is_still_long_is_compacted_after_the_clearing() -> None:
    trigger = {"type": "input_tokens", "value": 200}
    compact = {"type": "compact_20260112", "trigger": trigger}
    home = await house(far=Scripted(answers(RECORD), answers("It is.")))
    reply = await edit(home, compact, {"type": USES, **OVER_ONE})
    assert [each["type"] for each in reply.json["content"]] == ["compaction", "text"]
    assert results(sent(home)) == [PLACEHOLDER, "2", "3", "4"]
    [report] = applied(reply)
    assert report["cleared_tool_uses"] == 1
    # What is short enough after the clearing is not compacted.
    home = await house()
    none = {"type": "tool_uses", "value": 0}
    enough = compact | {"trigger": {"type": "input_tokens", "value": 1_000}}
    reply = await edit(home, {"type": USES, "keep": none, **OVER_ONE}, enough)
    assert [each["type"] for each in reply.json["content"]] == ["text"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"trigger": {"type": "turns", "value": 5}}, "trigger"),
        ({"trigger": {"type": "tool_uses", "value": 0}}, "trigger"),
        ({"trigger": {"type": "tool_uses", "value": True}}, "trigger"),
        ({"trigger": 5}, "trigger"),
        ({"keep": {"type": "tool_uses", "value": -1}}, "keep"),
        ({"keep": {"type": "input_tokens", "value": 1}}, "keep"),
        ({"clear_at_least": {"type": "tool_uses", "value": 1}}, "clear_at_least"),
        ({"exclude_tools": "read"}, "exclude_tools"),
        ({"exclude_tools": [1]}, "exclude_tools"),
        ({"clear_tool_inputs": "yes"}, "clear_tool_inputs"),
        ({"type": THINKING, "keep": "some"}, "keep"),
        ({"type": THINKING, "keep": {"type": "thinking_turns", "value": 0}}, "keep"),
    ],
)
async def test_c75_a_bad_clearing_names_its_field(fields: dict[str, Any], param: str) -> None:
    home = await house()
    reply = await edit(home, {"type": USES} | fields)
    assert reply.status == 400
    assert reply.json["error"]["param"] == f"context_management.edits[0].{param}"


async def test_c75_claude_clears_by_itself_and_its_fallback_gets_everything() -> None:
    swapped = {"near": MIXED["near"] | {"codec": "anthropic"}, "far": provider()}
    home = await house(
        near=Scripted(refuses(529)),
        codec=codec_of("anthropic"),
        far_codec=codec_of("openai_chat"),
        providers=swapped,
    )
    reply = await edit(home, {"type": USES, **OVER_ONE}, model="acme/large")
    first: Any = home.near.requests[0].body
    assert first["context_management"] == {"edits": [{"type": USES, **OVER_ONE}]}
    assert PLACEHOLDER not in json.dumps(first)
    assert results(sent(home)) == ["1", "2", "3", "4"]
    assert "context_management" in reply.headers["x-tollgate-adapted"].split(", ")
    assert "context_management" not in reply.json


async def test_c75_claude_as_a_fallback_gets_the_cleared_conversation() -> None:
    events = messages_events.text_answer("It is.")
    home = await house(
        near=Scripted(refuses(503)),
        far=Scripted([frame(event) for event in events]),
        codec=codec_of("openai_chat"),
        far_codec=codec_of("anthropic"),
        providers=MIXED,
    )
    reply = await edit(home, {"type": USES, **OVER_ONE}, model="acme/large")
    assert reply.json["content"] == [{"type": "text", "text": "It is."}]
    body: Any = home.far.requests[0].body
    assert "context_management" not in body
    assert json.dumps(body).count(PLACEHOLDER) == 1
    [report] = applied(reply)
    assert report["cleared_tool_uses"] == 1


def test_c75_a_cleared_picture_no_longer_counts_for_the_size_of_the_prompt() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    messages = turn(1)
    messages[2]["content"][0]["content"] = [{"type": "image", "source": source}]
    uses = {"type": USES, "keep": {"type": "tool_uses", "value": 0}, **OVER_ONE}
    body = {"model": "m", "max_tokens": 9, "messages": [*messages, *turn(2)]}
    management = {"context_management": {"edits": [uses]}}
    parsed = parse_request(json.dumps(body | management).encode())
    assert parsed.edits is not None
    edited = parsed.edits(parsed.request, lambda request: PromptSize.of(request).estimate)
    assert edited is not None
    assert parsed.request.size_bytes > 90_000
    assert edited.request.size_bytes < 3_000
