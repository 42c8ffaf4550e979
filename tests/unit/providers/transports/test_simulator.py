"""The simulator: deterministic answers and faults asked for by name."""

import asyncio
import json
from typing import Any

import pytest
from pydantic import JsonValue

from tests.unit.providers.decoding import decoded, folded
from tollgate.core.content import Text, ToolCall
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    JsonOutput,
    Sampling,
    Tool,
    ToolChoice,
    ToolMessage,
    UserMessage,
)
from tollgate.core.response import GenerationResponse
from tollgate.providers.ports.base import Target, Timeouts, UpstreamRefused
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import FormatName, codec_of
from tollgate.providers.simulator.simulator import PAUSE_S, Simulator

USER = UserMessage(content=(Text(text="one two three"),))
WEATHER = Tool(
    name="weather",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}},
        "required": ["city", "unit"],
    },
)
NOW = Tool(name="now", parameters={"type": "object", "properties": {}})


class CountingClock:
    """A clock on which sleeping takes no time."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now_s(self) -> float:
        return 0.0

    def monotonic_s(self) -> float:
        return 0.0

    async def sleep(self, delay_s: float) -> None:
        self.slept.append(delay_s)


async def answer(
    model: str,
    request: GenerationRequest | None = None,
    simulator: Simulator | None = None,
    *,
    format_: FormatName = "openai_chat",
    **fields: Any,
) -> GenerationResponse:
    codec = codec_of(format_)
    dialect = Dialect(suffixes=format_ == "openai_completions")
    target = Target(provider="test", model="test/x", upstream_model=model, dialect=dialect)
    request = request or GenerationRequest(model="test/x", messages=(USER,), **fields)
    transport = simulator or Simulator(CountingClock())
    async with transport.open(codec.encode(request, target), Timeouts()) as frames:
        return folded(
            decoded(
                codec.decoder(target), [frame async for together in frames for frame in together]
            )
        )


@pytest.mark.parametrize("suffix", [None, "four"])
async def test_c81_echo_completes_prompts_too(suffix: str | None) -> None:
    response = await answer("echo", format_="openai_completions", suffix=suffix)
    assert response.parts == (Text(text="one two three"),)
    assert (response.usage.input_tokens, response.usage.output_tokens) == (3, 3)
    cut = await answer("echo", format_="openai_completions", output_tokens_max=2)
    assert (cut.parts, cut.finish) == ((Text(text="one two"),), "length")


async def test_echo_repeats_the_last_user_text_and_counts_words() -> None:
    response = await answer("echo")
    assert response.parts == (Text(text="one two three"),)
    assert response.usage.input_tokens == 3
    assert response.usage.output_tokens == 3
    assert response == await answer("echo")


async def test_echo_keeps_to_the_output_limit() -> None:
    response = await answer("echo", output_tokens_max=2)
    assert (response.parts, response.finish) == ((Text(text="one two"),), "length")


@pytest.mark.parametrize(
    ("stop", "text"),
    [(("two",), "one "), (("three", "two"), "one "), (("four", "n"), "o"), (("four",), None)],
)
async def test_c13_echo_ends_before_the_first_text_that_stops_it(
    stop: tuple[str, ...], text: str | None
) -> None:
    response = await answer("echo", sampling=Sampling(stop=stop))
    assert (response.parts, response.finish) == ((Text(text=text or "one two three"),), "stop")


async def test_echo_calls_a_tool_only_if_that_is_forced() -> None:
    assert (await answer("echo", tools=(NOW,))).parts == (Text(text="one two three"),)
    for choice in (ToolChoice(mode="required"), ToolChoice(mode="named", name="now")):
        (call,) = (await answer("echo", tools=(NOW,), tool_choice=choice)).parts
        assert isinstance(call, ToolCall)
        assert call.name == "now"


async def test_c16_json_that_is_asked_for_is_json() -> None:
    response = await answer("echo", output_format=JsonOutput())
    assert response.parts == (Text(text='{"text":"one two three"}'),)


async def test_tools_calls_one_tool_with_arguments_of_its_schema() -> None:
    response = await answer("tools", tools=(WEATHER,))
    (call,) = response.parts
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments) == ("weather", '{"city":"text","unit":"C"}')
    assert response.finish == "tool_calls"


async def test_tools_calls_two_tools_in_parallel() -> None:
    response = await answer("tools", tools=(WEATHER, NOW))
    first, second = response.parts
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert (first.name, second.name, second.arguments) == ("weather", "now", "{}")
    assert first.id != second.id


async def test_tools_answers_a_result_with_text() -> None:
    call = ToolCall(id="a", name="now", arguments="{}")
    request = GenerationRequest(
        model="test/tools",
        messages=(
            USER,
            AssistantMessage(content=(call,)),
            ToolMessage(call_id="a", content=(Text(text="noon"),)),
        ),
        tools=(NOW,),
    )
    response = await answer("tools", request)
    assert response.parts == (Text(text="The tool answered: noon"),)


@pytest.mark.parametrize(
    "choice", [ToolChoice(mode="required"), ToolChoice(mode="named", name="now")]
)
async def test_a_forced_call_is_made_after_a_result_too(choice: ToolChoice) -> None:
    call = ToolCall(id="a", name="weather", arguments="{}")
    request = GenerationRequest(
        model="test/tools",
        messages=(
            USER,
            AssistantMessage(content=(call,)),
            ToolMessage(call_id="a", content=(Text(text="mild"),)),
        ),
        tools=(WEATHER, NOW),
        tool_choice=choice,
    )
    (made,) = (await answer("tools", request)).parts
    assert isinstance(made, ToolCall)
    assert made.name == "now"


async def test_tools_follows_a_schema_into_objects_and_definitions() -> None:
    point: JsonValue = {
        "type": "object",
        "properties": {"x": {"type": "number"}, "next": {"$ref": "#/$defs/Name"}},
        "required": ["x", "next"],
    }
    tool = Tool(
        name="draw",
        parameters={
            "type": "object",
            "properties": {
                "at": {"$ref": "#/$defs/Point"},
                "size": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "style": {"type": "object", "properties": {"color": {"enum": ["red"]}}},
            },
            "required": ["at", "size", "style"],
            "$defs": {"Point": point, "Name": {"type": "string"}},
        },
    )
    (call,) = (await answer("tools", tools=(tool,))).parts
    assert isinstance(call, ToolCall)
    assert json.loads(call.arguments) == {
        "at": {"x": 1.5, "next": "text"},
        "size": 1,
        "style": {"color": "red"},
    }


async def test_a_schema_that_refers_to_itself_ends() -> None:
    node: JsonValue = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/Node"}},
        "required": ["next"],
    }
    tool = Tool(name="walk", parameters={"$defs": {"Node": node}, **node})  # type: ignore[dict-item]
    (call,) = (await answer("tools", tools=(tool,))).parts
    assert isinstance(call, ToolCall)
    assert json.loads(call.arguments)["next"]["next"]


async def test_a_schema_that_refers_to_itself_often_ends_soon() -> None:
    names = [f"name{number}" for number in range(20)]
    node: JsonValue = {"properties": {name: {"$ref": "#/$defs/Node"} for name in names}}
    tool = Tool(name="walk", parameters={"$defs": {"Node": node}, **node})  # type: ignore[dict-item]
    (call,) = (await answer("tools", tools=(tool,))).parts
    assert isinstance(call, ToolCall)
    assert list(json.loads(call.arguments)) == names
    assert len(call.arguments) < 1_000_000


async def test_slow_pauses_on_the_clock_it_is_given() -> None:
    clock = CountingClock()
    await answer("slow", simulator=Simulator(clock))
    assert clock.slept == [PAUSE_S] * 6


@pytest.mark.parametrize(
    ("fault", "code"),
    [("429", ErrorCode.PROVIDER_RATE_LIMIT), ("529", ErrorCode.PROVIDER_OVERLOADED)],
)
async def test_a_fault_asked_for_by_name_says_when_to_come_back(
    fault: str, code: ErrorCode
) -> None:
    with pytest.raises(UpstreamRefused) as refused:
        await answer(f"echo:{fault}")
    target = Target(provider="test", model="test/echo", upstream_model="echo")
    error = codec_of("openai_chat").error(refused.value, target)
    assert (error.code, error.retry_after_s) == (code, 1.0)


async def test_a_timeout_never_answers() -> None:
    waiting = asyncio.create_task(answer("echo:timeout"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.parametrize("words", ["hi", "one two three four five six"])
async def test_a_dropped_stream_never_ends_however_short(words: str) -> None:
    message = UserMessage(content=(Text(text=words),))
    with pytest.raises(UpstreamError, match="closed before the end"):
        await answer("echo:drop-after-5", GenerationRequest(model="x", messages=(message,)))


async def test_500_once_fails_the_first_try_of_each_body() -> None:
    simulator = Simulator(CountingClock())
    for _ in range(2):
        with pytest.raises(UpstreamRefused) as refused:
            await answer("echo:500-once", simulator=simulator)
        assert refused.value.status == 500
        assert (await answer("echo:500-once", simulator=simulator)).finish == "stop"


@pytest.mark.parametrize("model", ["gpt-5", "echo:no-such-fault", "echo:drop-after-", ""])
async def test_a_model_it_does_not_know_is_refused(model: str) -> None:
    with pytest.raises(UpstreamRefused) as refused:
        await answer(model)
    assert refused.value.status == 404
