"""A provider's lies about its usage, in each format, streamed and whole: none is billed as it is.

Keeps C65, C66.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.cells import cells
from tests.gateways import House, house
from tests.scripted import Scripted
from tests.unit.routing.catalogs import endpoint, model, provider
from tests.upstream import completion_chunks as completions
from tests.upstream import converse_events as converse
from tests.upstream import gemini_chunks as gemini
from tests.upstream import messages_events as messages
from tests.upstream import openai_chunks as chat
from tests.upstream import responses_events as responses
from tests.upstream.wires import EVERY_WIRE, Wire
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.usage import Usage
from tollgate.engine.generate import generate

CONTEXT: Final = 1_000_000
MAX_OUTPUT: Final = 128_000
WORDS: Final = "12345"
# The limit of the request with its slack.
OUTPUT_MAX: Final = 5 + 64
SEARCHES_MAX: Final = 1_000
HUGE: Final = 10**9
Report = dict[str, Any]

# The honest report of 10 tokens of prompt and 5 of output, by codec.
_OPENAI: Final[Report] = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
HONEST: Final[Mapping[str, Report]] = {
    "openai_chat": _OPENAI,
    "openai_completions": _OPENAI,
    "openai_responses": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
    "anthropic": {"input_tokens": 10, "output_tokens": 5},
    "gemini": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
    "bedrock": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15},
}
# The places of a report, by what is counted there. A codec without a place has no such count.
_OPENAI_PLACES: Final = {
    "input": "prompt_tokens",
    "output": "completion_tokens",
    "total": "total_tokens",
    "cached": "prompt_tokens_details.cached_tokens",
    "written": "prompt_tokens_details.cache_write_tokens",
    "audio": "prompt_tokens_details.audio_tokens",
    "reasoning": "completion_tokens_details.reasoning_tokens",
    "searches": "num_search_queries",
}
PLACES: Final[Mapping[str, Mapping[str, str]]] = {
    "openai_chat": _OPENAI_PLACES,
    "openai_completions": _OPENAI_PLACES,
    "openai_responses": {
        "input": "input_tokens",
        "output": "output_tokens",
        "total": "total_tokens",
        "cached": "input_tokens_details.cached_tokens",
        "written": "input_tokens_details.cache_write_tokens",
        "reasoning": "output_tokens_details.reasoning_tokens",
    },
    "anthropic": {
        "input": "input_tokens",
        "output": "output_tokens",
        "cached": "cache_read_input_tokens",
        "written": "cache_creation_input_tokens",
        "hour": "cache_creation.ephemeral_1h_input_tokens",
        "reasoning": "output_tokens_details.thinking_tokens",
        "searches": "server_tool_use.web_search_requests",
    },
    "gemini": {
        "input": "promptTokenCount",
        "output": "candidatesTokenCount",
        "total": "totalTokenCount",
        "cached": "cachedContentTokenCount",
        "written": "toolUsePromptTokenCount",
        "reasoning": "thoughtsTokenCount",
    },
    "bedrock": {
        "input": "inputTokens",
        "output": "outputTokens",
        "total": "totalTokens",
        "cached": "cacheReadInputTokens",
        "written": "cacheWriteInputTokens",
    },
}
LIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "input below zero": {"input": -10},
    "input far below zero": {"input": -HUGE},
    "output below zero": {"output": -5},
    "both below zero": {"input": -HUGE, "output": -HUGE},
    "cached below zero": {"cached": -1_000_000},
    "written below zero": {"written": -1_000_000},
    "reasoning below zero": {"reasoning": -1_000_000},
    "total below zero": {"total": -1},
    "searches below zero": {"searches": -3},
    "audio below zero": {"audio": -3},
    "a thousand million of input": {"input": HUGE},
    "a thousand million of output": {"output": HUGE},
    "a thousand million of both": {"input": HUGE, "output": HUGE, "total": 2 * HUGE},
    "a thousand million cached": {"cached": HUGE},
    "a thousand million written": {"written": HUGE},
    "a thousand million written for an hour": {"written": 5, "hour": HUGE},
    "a thousand million of reasoning": {"reasoning": HUGE},
    "a thousand million in total": {"total": HUGE},
    "a thousand million searches": {"searches": HUGE},
    "a thousand million of audio": {"audio": HUGE},
    "reasoning that the total confirms": {"reasoning": HUGE, "total": HUGE + 15},
    "more cached and written than prompt": {"cached": 9, "written": 9},
    "a total below its parts": {"total": 3},
    "no input, and a total beyond all": {"input": None, "total": HUGE},
    "no output, and a total beyond all": {"output": None, "total": HUGE},
    "beyond any integer": {"input": 10**30, "output": 10**30},
    "far beyond any integer below zero": {"cached": -(10**30)},
    "fractions": {"input": 10.5, "output": 0.1, "cached": -0.5},
    "booleans": {"input": True, "output": True, "cached": True},
    "words": {"input": "many", "output": "-5", "cached": "all"},
    "objects": {"input": {"tokens": HUGE}, "output": [HUGE], "cached": {}},
}
by_wire = pytest.mark.parametrize("wire", EVERY_WIRE, ids=lambda wire: wire.name)
by_way = cells("stream", [True, False], ids=["streamed", "whole"])


def report_of(codec: str, said: Mapping[str, Any]) -> Report:
    """The honest report with something else in these places; None leaves the place out."""
    report: Report = json.loads(json.dumps(HONEST[codec]))
    for counted, value in said.items():
        *path, name = PLACES[codec].get(counted, "nowhere").split(".")
        inner = report
        for step in path:
            inner = inner.setdefault(step, {})
        if value is None:
            inner.pop(name, None)
        else:
            inner[name] = value
    return report


def written(codec: str, report: Report) -> list[bytes]:
    """An answer of five bytes that ends with this report."""
    match codec:
        case "openai_chat":
            said = [chat.chunk({"content": WORDS}), chat.chunk({}, finish="stop")]
            return [*map(chat.sse, [*said, chat.chunk(usage=report)]), chat.DONE]
        case "openai_completions":
            told = [completions.chunk(WORDS), completions.chunk("", finish="stop")]
            return [*map(chat.sse, [*told, completions.chunk(usage=report)]), chat.DONE]
        case "openai_responses":
            return [
                responses.created(),
                responses.added({"type": "message", "content": []}),
                responses.text_delta(WORDS),
                responses.done(responses.message(WORDS)),
                responses.completed(responses.message(WORDS), usage=report),
            ]
        case "anthropic":
            begun = messages.start()
            begun["message"]["usage"] = report
            ended = messages.message_delta("end_turn")
            ended["usage"] = report
            said = [begun, messages.text(0), messages.words(WORDS, 0), messages.block_stop(0)]
            return [json.dumps(event).encode() for event in (*said, ended, messages.STOP)]
        case "gemini":
            last = gemini.chunk(finish="STOP") | {"usageMetadata": report}
            return [*map(gemini.sse, (gemini.chunk(gemini.text(WORDS)), last))]
        case _:
            return [
                converse.message_start(),
                converse.text_delta(WORDS, 0),
                converse.block_stop(),
                converse.message_stop(),
                converse.event("metadata", {"usage": report, "metrics": {"latencyMs": 1}}),
            ]


async def billed(
    wire: Wire, report: Report, *, stream: bool, limit: int | None = 5, **facts: Any
) -> GenerationRecord:
    """The record of an answer of five bytes with this report."""
    events = written(wire.codec_name, report)
    return await record_of(wire, events, stream=stream, limit=limit, **facts)


async def record_of(
    wire: Wire, events: list[bytes], *, stream: bool, limit: int | None = 5, **facts: Any
) -> GenerationRecord:
    """The record of an answer of these events."""
    row = provider(dialect=wire.dialect.model_dump(exclude_unset=True), **wire.place)
    facts = {"context": CONTEXT, "max_output": MAX_OUTPUT} | facts
    served = model(endpoint("near", "m-1", web_search="0.01"), **facts)
    home: House = await house(
        near=Scripted(wire.frames([wire.body(events)])),
        codec=wire.codec,
        providers={"near": row, "far": provider()},
        models={"acme/large": served},
        aliases={},
        routes={},
    )
    asked = {"model": "acme/large", "stream": stream, "max_tokens": limit}
    content = json.dumps(asked | {"messages": [{"role": "user", "content": "Hello"}]}).encode()
    call = replace(home.call("acme/large"), parsed=home.ingress.parse(content))
    await generate(home.gateway, call, home.sink(call, home.reply()))
    return home.record


def holds(record: GenerationRecord) -> None:
    """The record bills nothing below zero, nothing above its bound, and is what it adds up to."""
    usage = record.usage
    assert record.outcome == "ok"
    assert 0 <= usage.input_tokens <= CONTEXT
    assert 0 <= (usage.output_tokens or 0) <= OUTPUT_MAX
    assert 0 <= (usage.reasoning_tokens or 0) <= (usage.output_tokens or 0)
    assert 0 <= (usage.web_searches or 0) <= SEARCHES_MAX
    assert all(line.quantity > 0 and line.cost_nano_usd >= 0 for line in record.lines)
    assert record.cost_nano_usd == sum(line.cost_nano_usd for line in record.lines)


def test_there_are_thirty_one_lies() -> None:
    assert len(LIES) == 31


@by_wire
@by_way
@cells("lie", LIES)
async def test_c65_no_lie_is_billed_beyond_its_bound_or_pays_the_caller(
    lie: str, wire: Wire, stream: bool
) -> None:
    said = LIES[lie]
    report = report_of(wire.codec_name, said)
    record = await billed(wire, report, stream=stream)
    holds(record)
    # A lie below zero or of no number never makes the answer cheaper than what stands beside it.
    if "output" not in said:
        assert (record.usage.output_tokens or 0) >= 5
    if "input" not in said and "total" not in said:
        assert record.usage.input_tokens >= 10
    biggest = [count for count in said.values() if count == HUGE]
    if biggest and {"input", "output"} & said.keys() and None not in said.values():
        assert record.usage_source == "bounded"
        assert record.raw_usage == report


@by_wire
@by_way
async def test_c65_honest_extremes_are_billed_as_they_were_reported(
    wire: Wire, stream: bool
) -> None:
    """A million tokens of context, 128,000 of output, five bytes of which were shown."""
    whole = {"input": CONTEXT, "output": MAX_OUTPUT, "total": CONTEXT + MAX_OUTPUT}
    report = report_of(wire.codec_name, whole)
    record = await billed(wire, report, stream=stream, limit=None, supports=("reasoning",))
    assert record.usage_source == "provider"
    assert (record.usage.input_tokens, record.usage.output_tokens) == (CONTEXT, MAX_OUTPUT)


numbers = (
    st.integers()
    | st.integers(-HUGE * 10, HUGE * 10)
    | st.integers(0, 200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.none()
)


@given(
    wire=st.sampled_from(EVERY_WIRE),
    said=st.dictionaries(
        st.sampled_from(sorted({place for places in PLACES.values() for place in places})), numbers
    ),
    stream=st.booleans(),
)
def test_c65_any_numbers_are_billed_within_the_bound(
    wire: Wire, said: dict[str, Any], stream: bool
) -> None:
    record = asyncio.run(billed(wire, report_of(wire.codec_name, said), stream=stream))
    holds(record)


@by_way
async def test_c65_a_prompt_that_gemini_blocked_without_counts_costs_nothing(stream: bool) -> None:
    wire = next(wire for wire in EVERY_WIRE if wire.name == "gemini")
    blocked = {"blockReason": "SAFETY", "blockReasonMessage": "This prompt was blocked."}
    record = await record_of(wire, [gemini.sse({"promptFeedback": blocked})], stream=stream)
    assert (record.outcome, record.finish) == ("ok", "content_filter")
    assert (record.usage, record.cost_nano_usd, record.usage_source) == (Usage(), 0, "none")


def test_the_honest_report_is_billed_as_it_is() -> None:
    for wire in EVERY_WIRE:
        record = asyncio.run(billed(wire, report_of(wire.codec_name, {}), stream=True))
        assert record.usage == Usage(uncached_input_tokens=10, output_tokens=5)
        assert record.usage_source == "provider"
