"""Which tools an attempt leaves to its provider."""

import msgspec
import pytest

from tollgate.core.content import Text
from tollgate.core.request import (
    GenerationRequest,
    JsonOutput,
    OutputFormat,
    Tool,
    ToolChoice,
    UserMessage,
)
from tollgate.core.server_tools import ServerTool
from tollgate.engine.rounds.native_tools import leave_to_provider
from tollgate.providers.ports.base import NativeSearch, Target
from tollgate.providers.ports.formats import WIRE_FORMATS

SEARCH = ServerTool(id="web_search", uses_max=3, by_provider=True)
FETCH = ServerTool(id="web_fetch")
OWN = (Tool(name="web_search"), Tool(name="web_fetch"))


def left(
    *tools: ServerTool,
    search: NativeSearch | None,
    functions: tuple[Tool, ...] = OWN,
    choice: ToolChoice | None = None,
    form: OutputFormat | None = None,
) -> tuple[list[str], list[str]]:
    """The tools that the provider runs, and the functions that are offered beside them."""
    target = Target(provider="p", model="a/m", upstream_model="m", native_search=search)
    request = GenerationRequest(
        model="a/m",
        messages=(UserMessage(content=(Text(text="Hi"),)),),
        server_tools=tools,
        tools=functions,
        tool_choice=choice,
        output_format=form,
    )
    attempted = leave_to_provider(request, target)
    return [tool.id for tool in attempted.server_tools], [tool.name for tool in attempted.tools]


ANTHROPIC = WIRE_FORMATS["anthropic"].native_search
OPENAI = WIRE_FORMATS["openai_responses"].native_search
GEMINI = WIRE_FORMATS["gemini"].native_search


def test_a_search_is_left_to_a_provider_that_has_one() -> None:
    assert left(SEARCH, FETCH, search=ANTHROPIC) == (["web_search"], ["web_fetch"])
    assert left(SEARCH, FETCH, search=None) == ([], ["web_search", "web_fetch"])


def test_a_search_that_routing_does_not_leave_to_providers_stays_a_function() -> None:
    ours = msgspec.structs.replace(SEARCH, by_provider=False)
    assert left(ours, search=ANTHROPIC) == ([], ["web_search", "web_fetch"])


@pytest.mark.parametrize(
    ("allowed", "blocked", "takers"),
    [
        ((), (), [ANTHROPIC, OPENAI]),
        (("a.example",), (), [ANTHROPIC, OPENAI]),
        ((), ("b.example",), [ANTHROPIC]),
        (("a.example",), ("b.example",), []),
    ],
)
def test_domains_that_a_provider_cannot_keep_to_keep_the_search_here(
    allowed: tuple[str, ...], blocked: tuple[str, ...], takers: list[NativeSearch]
) -> None:
    tool = msgspec.structs.replace(SEARCH, allowed_domains=allowed, blocked_domains=blocked)
    for search in (ANTHROPIC, OPENAI):
        assert (left(tool, search=search)[0] == ["web_search"]) is (search in takers)


def test_gemini_searches_where_nothing_else_is_offered() -> None:
    alone = OWN[:1]
    assert left(SEARCH, search=GEMINI, functions=alone) == (["web_search"], [])
    assert left(SEARCH, search=GEMINI, functions=OWN)[0] == []
    assert left(SEARCH, search=GEMINI, functions=alone, form=JsonOutput())[0] == []


@pytest.mark.parametrize(
    "choice", [ToolChoice(mode="none"), ToolChoice(mode="named", name="web_search")]
)
def test_a_search_that_is_forced_or_forbidden_is_a_function(choice: ToolChoice) -> None:
    assert left(SEARCH, search=ANTHROPIC, choice=choice)[0] == []
