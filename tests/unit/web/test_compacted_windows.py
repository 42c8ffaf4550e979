"""A long conversation is compacted before its answer, if the request has a rule.

Keeps C75.
"""

from typing import Any

import pytest

from tests.compacting import RECORD, RESPONSES, frames, open_client
from tests.scripted import answers, calls, ends

LONG = [
    {"role": "developer", "content": "Be curt."},
    {"role": "user", "content": "Draw a bridge."},
    {"role": "assistant", "content": "word " * 2_000},
    {"role": "user", "content": "Is it blue?"},
]
RULE = [{"type": "compaction", "compact_threshold": 1_000}]


@pytest.mark.parametrize("stream", [False, True])
async def test_c75_a_long_conversation_is_compacted_before_its_answer(stream: bool) -> None:
    client = await open_client(answers(RECORD), answers("It is."), answers("As the sea."))
    reply = await client.ask(RESPONSES, LONG, context_management=RULE, stream=stream)
    if stream:
        events = frames(reply)
        assert [event["sequence_number"] for event in events] == [*range(len(events))]
        assert events[3]["item"]["type"] == "compaction"
        output = events[-1]["response"]["output"]
    else:
        output = reply.json["output"]
    assert [item["type"] for item in output] == ["compaction", "message"]
    assert output[1]["content"][0]["text"] == "It is."
    texts = [each["content"] for each in client.prompt]
    assert (texts[:2], texts[3]) == (["Be curt.", "Draw a bridge."], "Is it blue?")
    assert texts[2].endswith(RECORD)
    # The item stands for what clients may still send before it.
    more = {"role": "user", "content": "How blue?"}
    again = await client.ask(RESPONSES, [*LONG, *output, more], context_management=RULE)
    assert [item["type"] for item in again.json["output"]] == ["message"]
    assert [each["content"] for each in client.prompt][3:] == ["It is.", "How blue?"]


async def test_c75_a_compaction_and_the_answer_after_it_are_two_bills() -> None:
    client = await open_client(answers(RECORD), answers("It is."))
    reply = await client.ask(RESPONSES, LONG, context_management=RULE)
    books = client.home.stores.books
    assert client.home.held_nano_usd == 0
    assert len(books.records) == 2
    costs = [record.cost_nano_usd for record in books.records.values()]
    assert all(costs)
    assert sum(costs) == client.home.spent_nano_usd
    [own] = [each for each in books.records.values() if each.id == reply.headers["x-request-id"]]
    assert reply.json["usage"]["cost"] == own.cost_nano_usd / 1e9


@pytest.mark.parametrize(
    ("input_", "rule"),
    [
        (LONG, [{"type": "compaction", "compact_threshold": 100_000}]),
        (LONG, [{"type": "compaction"}]),
        (LONG[3:], RULE),
        ([{"role": "user", "content": "word " * 2_000}], RULE),
    ],
)
async def test_c75_what_is_short_or_new_is_not_compacted(input_: Any, rule: Any) -> None:
    client = await open_client(answers("It is."))
    reply = await client.ask(RESPONSES, input_, context_management=rule)
    assert [item["type"] for item in reply.json["output"]] == ["message"]
    assert len(client.home.far.requests) == 1


async def test_c75_a_record_that_fails_fails_the_request_and_costs_nothing() -> None:
    client = await open_client([*calls("paint"), *ends("tool_calls")])
    reply = await client.ask(RESPONSES, LONG, context_management=RULE, stream=True)
    assert (reply.status, reply.error["code"]) == (502, "provider_unavailable")
    assert client.home.spent_nano_usd == client.home.held_nano_usd == 0


async def test_c75_a_compacted_answer_is_replayed_whole() -> None:
    client = await open_client(answers(RECORD), answers("It is."))
    both = [await client.ask(RESPONSES, LONG, context_management=RULE, claim="k") for _ in range(2)]
    assert both[0].json["output"] == both[1].json["output"]
    assert len(client.home.far.requests) == 2


async def test_c75_a_stored_conversation_goes_on_after_its_compaction() -> None:
    client = await open_client(
        answers("word " * 2_000),
        answers(RECORD),
        answers("It is."),
        answers("Yes."),
        response_days=7,
    )
    first = await client.ask(RESPONSES, "Draw a bridge.")
    fields = {"context_management": RULE, "previous_response_id": first.json["id"]}
    second = await client.ask(RESPONSES, "Is it blue?", **fields)
    fields["previous_response_id"] = second.json["id"]
    third = await client.ask(RESPONSES, "Sure?", **fields)
    assert third.json["store"] is True
    texts = [each["content"] for each in client.prompt]
    assert (texts[0], texts[2:]) == ("Draw a bridge.", ["It is.", "Sure?"])


@pytest.mark.parametrize(
    ("rule", "param"),
    [
        ([{"type": "clear"}], "context_management[0].type"),
        (
            [{"type": "compaction", "compact_threshold": 0}],
            "context_management[0].compact_threshold",
        ),
        ([*RULE, *RULE], "context_management"),
        ({}, "context_management"),
    ],
)
async def test_c75_a_bad_rule_names_its_field(rule: Any, param: str) -> None:
    client = await open_client(answers("It is."))
    reply = await client.ask(RESPONSES, LONG, context_management=rule)
    assert (reply.status, reply.error["param"]) == (400, param)
