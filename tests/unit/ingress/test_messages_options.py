"""Tools and options of a request in Anthropic's format.

Keeps C15, C17, C20, C53, C80.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.ingress.messages_requests import (
    HOUR,
    SCHEMA,
    WEATHER,
    parsed,
    request,
    text,
    user,
)
from tollgate.core.content import (
    CacheMark,
)
from tollgate.core.request import (
    NativeOptions,
    ReasoningOptions,
    Sampling,
    SchemaOutput,
    Tool,
    ToolChoice,
)


def test_c15_tools_of_the_caller_and_those_with_a_type_of_anthropics() -> None:
    bash = {"type": "bash_20250124", "name": "bash"}
    custom = {**WEATHER, "description": "Tells.", "strict": True, "cache_control": HOUR}
    call = parsed(
        tools=[custom, bash, {**WEATHER, "name": "x", "defer_loading": True, "novelty": 1}]
    )
    assert call.request.tools == (
        Tool(
            name="weather",
            description="Tells.",
            parameters=SCHEMA,
            strict=True,
            cache=CacheMark(lifetime="1h"),
        ),
        Tool(name="x", parameters=SCHEMA),
    )
    assert call.request.native == NativeOptions(
        wire_format="anthropic",
        tools=(bash,),
        tool_fields={"x": {"defer_loading": True, "novelty": 1}},
        unknown_names=("tools[].novelty",),
    )
    assert call.ignored == ()


@pytest.mark.parametrize(
    ("choice", "expected", "parallel"),
    [
        ({"type": "auto"}, ToolChoice(mode="auto"), None),
        ({"type": "any"}, ToolChoice(mode="required"), None),
        ({"type": "none"}, ToolChoice(mode="none"), None),
        ({"type": "tool", "name": "weather"}, ToolChoice(mode="named", name="weather"), None),
        (
            {"type": "auto", "disable_parallel_tool_use": True},
            ToolChoice(mode="auto"),
            False,
        ),
    ],
)
def test_c15_the_choice_among_tools(
    choice: Any, expected: ToolChoice, parallel: bool | None
) -> None:
    asked = request(tools=[WEATHER], tool_choice=choice)
    assert (asked.tool_choice, asked.parallel_tool_calls) == (expected, parallel)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 2048}},
            ReasoningOptions(tokens_max=2048, display_open=True),
        ),
        (
            {"thinking": {"type": "adaptive"}},
            ReasoningOptions(enabled=True, display_open=True),
        ),
        (
            {"thinking": {"type": "adaptive", "display": "summarized"}},
            ReasoningOptions(enabled=True),
        ),
        (
            {
                "thinking": {"type": "adaptive", "display": "omitted"},
                "output_config": {"effort": "xhigh"},
            },
            ReasoningOptions(effort="xhigh", exclude=True),
        ),
        (
            {"output_config": {"effort": "low"}},
            ReasoningOptions(effort="low", effort_alone=True, display_open=True),
        ),
        ({"thinking": {"type": "disabled"}}, ReasoningOptions(enabled=False)),
        (
            {"thinking": {"type": "disabled"}, "output_config": {"effort": "low"}},
            ReasoningOptions(enabled=False, effort="low", effort_alone=True),
        ),
    ],
)
def test_c17_thinking_and_effort_are_reasoning(
    fields: Any, expected: ReasoningOptions | None
) -> None:
    assert request(**fields).reasoning == expected


def test_c80_the_form_of_the_answer_is_a_schema() -> None:
    form = {"type": "json_schema", "schema": SCHEMA}
    asked = request(output_config={"format": form})
    assert asked.output_format == SchemaOutput(name="answer", schema=SCHEMA, strict=True)


def test_c80_sampling_and_the_rest_have_their_core_names() -> None:
    asked = request(
        temperature=0.5,
        top_p=0.9,
        top_k=5,
        stop_sequences=["END"],
        metadata={"user_id": "u"},
        service_tier="standard_only",
        provider={"order": ["Bedrock"]},
    )
    assert asked.sampling == Sampling(temperature=0.5, top_p=0.9, top_k=5, stop=("END",))
    assert (asked.user, asked.service_tier) == ("u", "default")
    assert asked.preferences.order == ("bedrock",)


def test_c80_features_in_preview_and_their_fields_are_options_of_the_format() -> None:
    edits = {"edits": [{"type": "clear_thinking_20251015"}]}
    asked = request(
        headers={"anthropic-beta": "a-2025-01-01, b-2025-01-01,,a-2025-01-01"},
        context_management=edits,
        output_config={"task_budget": {"total": 9}},
    )
    assert asked.native == NativeOptions(
        wire_format="anthropic",
        fields={"context_management": edits, "output_config.task_budget": {"total": 9}},
        betas=("a-2025-01-01", "b-2025-01-01"),
    )


def test_c53_requests_of_one_session_of_claude_code_keep_together() -> None:
    asked = request(headers={"x-claude-code-session-id": "s-1"})
    assert asked.preferences.session_id == "s-1"
    assert request(session_id="own", headers={"x-claude-code-session-id": "s-1"}).preferences == (
        replace(asked.preferences, session_id="own")
    )


def test_c22_unknown_fields_are_named_for_providers_of_the_format() -> None:
    call = parsed(
        user(text("Hi", novelty=1)),
        novelty=1,
        metadata={"novelty": 1},
        thinking={"type": "adaptive", "novelty": 1},
    )
    native = call.request.native
    assert native is not None
    assert native.unknown_names == (
        "novelty",
        "metadata.novelty",
        "thinking.novelty",
        "messages[].content[].novelty",
    )
    inner = {"novelty": 1}
    assert native.unknown == {"novelty": 1, "metadata": inner, "thinking": inner}
    assert call.ignored == ()


def test_c80_fields_of_tools_that_only_claude_knows_are_options_of_the_format() -> None:
    later = WEATHER | {"defer_loading": True, "allowed_callers": ["direct"]}
    call = parsed(tools=[later, WEATHER | {"name": "now", "input_examples": None}])
    assert call.request.native == NativeOptions(
        wire_format="anthropic",
        tool_fields={"weather": {"defer_loading": True, "allowed_callers": ["direct"]}},
    )
    assert call.ignored == ()


def test_c17_a_budget_and_an_effort_are_both_kept() -> None:
    thinking = {"type": "enabled", "budget_tokens": 2_000}
    call = parsed(thinking=thinking, output_config={"effort": "low"})
    assert call.request.reasoning == ReasoningOptions(
        tokens_max=2_000, effort="low", display_open=True
    )


def test_c6_a_mark_on_a_request_without_a_block_marks_nothing() -> None:
    instructions = {"role": "system", "content": []}
    assert request(instructions, cache_control=HOUR).messages == ()
