"""Options that only Anthropic's format has reach the hosts that take them, and are named elsewhere.

Keeps C80.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.providers.anthropic.requests import user
from tollgate.core.request import GenerationRequest, NativeOptions, ReasoningOptions, Tool
from tollgate.providers.ports.base import Target, WireRequest
from tollgate.providers.ports.dialect import ClaudeCarrier, ClaudeDialect, Dialect
from tollgate.providers.ports.formats import FormatName, codec_of

EDITS: Any = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
MANAGED = "context-management-2025-06-27"
SCOPED = "prompt-caching-scope-2026-01-05"
BASH: Any = {"type": "bash_20250124", "name": "bash"}
NATIVE = NativeOptions(
    wire_format="anthropic",
    fields={"context_management": EDITS, "output_config.task_budget": {"total": 9}},
    betas=(MANAGED, SCOPED),
    tools=(BASH,),
)


def encoded(
    carrier: ClaudeCarrier = "anthropic",
    *,
    format_name: FormatName = "anthropic",
    betas: tuple[str, ...] | None = None,
    native: NativeOptions = NATIVE,
    reasoning_style: Any = None,
    **fields: Any,
) -> WireRequest:
    dialect = Dialect(
        claude_carrier=carrier,
        reasoning="claude_adaptive" if format_name == "anthropic" else reasoning_style,
        claude=ClaudeDialect(betas=betas),
    )
    target = Target(
        provider="acme",
        model="acme/m",
        upstream_model="m-1",
        supports=frozenset({"reasoning"}),
        dialect=dialect,
        project="p",
        location="global",
    )
    request = GenerationRequest(model="acme/m", messages=(user("Hi"),), native=native, **fields)
    return codec_of(format_name).encode(request, target)


def tools_of(wire: WireRequest) -> Any:
    return wire.body["tools"]


def test_c80_anthropic_gets_every_feature_field_and_tool() -> None:
    wire = encoded(reasoning=ReasoningOptions(effort="high"), tools=(Tool(name="now"),))
    assert wire.headers["anthropic-beta"] == f"{MANAGED},{SCOPED}"
    assert wire.body["context_management"] == EDITS
    assert wire.body["output_config"] == {"task_budget": {"total": 9}, "effort": "high"}
    tools: Any = wire.body["tools"]
    assert [tool["name"] for tool in tools] == ["now", "bash"]
    assert wire.adapted == ()


def test_c80_vertex_gets_the_features_that_it_knows_and_their_fields() -> None:
    wire = encoded("vertex")
    assert wire.headers["anthropic-beta"] == MANAGED
    assert wire.body["context_management"] == EDITS
    assert "output_config" not in wire.body
    assert wire.adapted == ("output_config.task_budget", f"anthropic-beta:{SCOPED}")


def test_c80_bedrock_gets_them_in_the_body() -> None:
    wire = encoded("bedrock")
    assert "anthropic-beta" not in wire.headers
    assert wire.body["anthropic_beta"] == [MANAGED]
    assert wire.adapted == ("output_config.task_budget", f"anthropic-beta:{SCOPED}")


def test_c80_converse_gets_them_among_the_fields_of_the_model() -> None:
    wire = encoded(
        format_name="bedrock",
        reasoning_style="claude_adaptive",
        betas=("context-management", "task-budgets"),
        native=replace(NATIVE, betas=(MANAGED, SCOPED, "task-budgets-2026-03-13")),
        reasoning=ReasoningOptions(effort="high"),
    )
    assert wire.body["additionalModelRequestFields"] == {
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "high", "task_budget": {"total": 9}},
        "context_management": EDITS,
        "anthropic_beta": [MANAGED, "task-budgets-2026-03-13"],
    }
    assert wire.adapted == (f"anthropic-beta:{SCOPED}", "tools[]:bash_20250124")


TOOL_FIELDS = replace(NATIVE, tool_fields={"now": {"defer_loading": True, "input_examples": [{}]}})


def test_c80_fields_of_tools_reach_the_hosts_that_take_them() -> None:
    now = (Tool(name="now"), Tool(name="then"))
    first, second, _ = tools_of(encoded(native=TOOL_FIELDS, tools=now))
    assert (first["defer_loading"], first["input_examples"]) == (True, [{}])
    assert "defer_loading" not in second

    search = replace(TOOL_FIELDS, betas=("tool-search-tool-2025-10-19",))
    wire = encoded("bedrock", betas=("tool-search-tool",), native=search, tools=now)
    first, *_ = tools_of(wire)
    assert first["defer_loading"] is True
    assert "input_examples" not in first
    assert "tools[].input_examples" in wire.adapted
    assert "tools[].defer_loading" not in wire.adapted


@pytest.mark.parametrize("format_name", ["openai_chat", "openai_responses", "bedrock", "gemini"])
def test_c80_fields_of_tools_are_named_elsewhere(format_name: FormatName) -> None:
    wire = encoded(format_name=format_name, native=TOOL_FIELDS, tools=(Tool(name="now"),))
    assert {"tools[].defer_loading", "tools[].input_examples"} <= set(wire.adapted)


def test_c80_a_field_goes_out_only_beside_its_feature() -> None:
    wire = encoded("bedrock", betas=("interleaved-thinking",))
    assert "context_management" not in wire.body
    assert "context_management" in wire.adapted


def test_c80_a_row_may_take_more_than_its_host_is_known_to() -> None:
    wire = encoded("bedrock", betas=("task-budgets", "prompt-caching-scope"))
    assert wire.body["anthropic_beta"] == [SCOPED]


@pytest.mark.parametrize("format_name", ["openai_chat", "openai_responses", "bedrock", "gemini"])
def test_c80_other_formats_name_what_they_leave_out(format_name: FormatName) -> None:
    assert encoded(format_name=format_name).adapted == (
        "context_management",
        "output_config.task_budget",
        f"anthropic-beta:{MANAGED}",
        f"anthropic-beta:{SCOPED}",
        "tools[]:bash_20250124",
    )


def test_c80_options_of_another_format_are_named() -> None:
    other = NativeOptions(wire_format="openai_responses", fields={"truncation": "auto"})
    assert encoded(native=other).adapted == ("truncation",)
