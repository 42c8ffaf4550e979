"""The requests for which the gateway runs tools: what they may be, and what each round has of them.

Keeps C73.
"""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.scripted import Scripted, answers
from tests.scripted_tools import (
    FETCH,
    QUERY,
    SEARCH,
    ScriptedTools,
    answered,
    asks,
    heard,
    sent,
    tooled,
    with_tools,
)
from tests.unit.routing.catalogs import NOW_S, catalog, principal, request
from tollgate.cli.routing.explanation import render_explanation
from tollgate.core.clock import SystemClock
from tollgate.core.errors import RequestError
from tollgate.core.request import GenerationRequest, Tool, ToolChoice
from tollgate.core.server_tools import ServerTool
from tollgate.engine.rounds.server_tools import plan_rounds
from tollgate.routing.planning.planner import Planner
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.web.models.endpoint_status import EndpointStatus
from tollgate.web.routing.explanation_shapes import explain_plan
from tollgate.wiring.services import wire_explained_tools

LEFT_OUT = replace(SEARCH, left_out_as="tools[]:web_search")
SEARCHING = asks(("web_search", QUERY))


@pytest.mark.parametrize(
    "choice",
    [ToolChoice(mode="required"), ToolChoice(mode="named", name="web_search")],
)
async def test_c73_what_is_forced_is_forced_once(choice: ToolChoice) -> None:
    home = await tooled(near=Scripted(SEARCHING, answers("It rains.")))

    await heard(home, tool_choice=choice)

    assert sent(home.near, 0)["tool_choice"] not in (None, "auto")
    assert "tool_choice" not in sent(home.near, 1)


async def test_c73_parallel_calls_are_withheld_of_the_caller_alone() -> None:
    both = asks(("web_search", QUERY), ("web_search", QUERY))
    home = await tooled(near=Scripted(both, answers("Yes.")))

    await heard(home, parallel_tool_calls=False)

    assert home.record.withheld_calls == 0
    assert len(home.record.runs) == 2


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"choices": 2}, "n"),
        ({"echo": True}, "echo"),
        ({"suffix": "end"}, "suffix"),
        ({"further": ((),)}, "prompt"),
        ({"tools": (Tool(name="web_search"),)}, "tools"),
    ],
)
async def test_c73_what_has_no_one_conversation_is_refused_by_its_field(
    changes: dict[str, object], param: str
) -> None:
    home = await tooled()
    with pytest.raises(RequestError) as refused:
        await answered(home, with_tools(home, **changes))
    assert refused.value.param == param
    assert home.held_nano_usd == 0


async def test_c73_a_tool_that_may_be_left_out_is_named_where_nothing_runs_it() -> None:
    tools = ScriptedTools(configured=())
    home = await tooled(tools, near=Scripted(answers("Hello")))

    choice = ToolChoice(mode="auto")
    reply = await answered(home, with_tools(home, LEFT_OUT, tool_choice=choice))

    assert {"tools", "tool_choice"}.isdisjoint(sent(home.near, 0))
    assert (home.record.rounds, home.record.trace.rounds) == ((), None)
    assert home.record.adapted == ("tools[]:web_search",)
    assert reply.headers["x-tollgate-adapted"] == "tools[]:web_search"


async def test_c73_one_of_two_tools_may_be_left_out() -> None:
    tools = ScriptedTools(configured=("web_fetch",))
    home = await tooled(tools, near=Scripted(answers("Hello")))

    await answered(home, with_tools(home, LEFT_OUT, FETCH))

    assert [tool["function"]["name"] for tool in sent(home.near, 0)["tools"]] == ["web_fetch"]
    assert home.record.adapted == ("tools[]:web_search",)


@pytest.mark.parametrize(
    ("tool", "choice", "param"),
    [
        (replace(SEARCH, field="plugins[0].id"), None, "plugins[0].id"),
        (LEFT_OUT, ToolChoice(mode="required"), "tool_choice"),
        (LEFT_OUT, ToolChoice(mode="named", name="web_search"), "tool_choice"),
    ],
)
@pytest.mark.parametrize("tools", [None, ScriptedTools(configured=())])
async def test_c73_a_tool_that_nothing_runs_is_refused_by_its_field(
    tools: ScriptedTools | None, tool: ServerTool, choice: ToolChoice | None, param: str
) -> None:
    home = await tooled(tools)
    home.gateway = replace(home.gateway, tools=tools)
    with pytest.raises(RequestError) as refused:
        await answered(home, with_tools(home, tool, tool_choice=choice))
    assert refused.value.param == param
    assert home.held_nano_usd == 0


async def test_c73_a_request_without_such_tools_never_meets_them() -> None:
    tools = ScriptedTools()
    home = await tooled(tools)
    await home.serve()
    assert (tools.routes, home.record.trace.rounds) == ([], None)


async def test_c73_the_tools_are_opened_for_the_route_whatever_prefix_names_it() -> None:
    tools = ScriptedTools()
    home = await tooled(tools)
    for name in ("acme/large", "best", "tensorzero::model_name::smart"):
        await answered(home, with_tools(home, name=name))
    assert tools.routes == [None, "smart", "smart"]


async def test_c53_c73_an_explanation_has_the_bound_of_the_tools_that_a_file_configures() -> None:
    priced = {"call": Decimal("0.008"), "source": "made up", "checked": "2026-11-22"}
    search = {"engine": "tavily", "key": {"env": "TAVILY_API_KEY"}, "price": priced, "uses_max": 3}
    planner = Planner(catalog(server_tools={"web_search": search, "datetime": {}}))
    make_tools = wire_explained_tools(SystemClock())
    plain = request("acme/large")
    searching = replace(plain, server_tools=(SEARCH, ServerTool(id="datetime")))

    work, tools = plan_rounds(make_tools, planner, searching, principal())

    assert isinstance(work, GenerationRequest)
    assert [tool.name for tool in work.tools] == ["web_search", "datetime"]
    assert work.size_bytes > searching.size_bytes
    assert tools is not None
    bound = tools.bound
    assert {name: each.bound.engine for name, each in tools.by_name.items()} == {
        "web_search": "tavily",
        "datetime": "tollgate",
    }
    assert (bound.rounds_max, bound.fees_nano_usd) == (6, 3 * 8_000_000)
    assert plan_rounds(make_tools, planner, plain, principal()) == (plain, None)
    with pytest.raises(RequestError):
        plan_rounds(None, planner, searching, principal())


def test_c53_c73_an_explanation_names_the_engine_of_each_tool() -> None:
    priced = {"call": Decimal("0.008"), "source": "made up", "checked": "2026-11-22"}
    key = {"env": "TAVILY_API_KEY"}
    search = {"engine": "tavily", "native": True, "key": key, "price": priced, "uses_max": 3}
    planner = Planner(catalog(server_tools={"web_search": search, "datetime": {}}))
    make_tools = wire_explained_tools(SystemClock())
    asked = replace(request("acme/large"), server_tools=(SEARCH, ServerTool(id="datetime")))
    work, tools = plan_rounds(make_tools, planner, asked, principal())
    assert tools is not None
    wanted = PlanningRequest.of(work, principal=principal(), request_id="r-1", rounds=tools.bound)

    explained = explain_plan(
        planner.survey(wanted, now_s=NOW_S),
        wanted,
        "a" * 64,
        time_s=60,
        status=EndpointStatus(),
        tools=tools,
    ).model_dump(mode="json")

    assert [
        (tool["id"], tool["engine"], tool["by_provider"], tool["uses_max"])
        for tool in explained["rounds"]["tools"]
    ] == [("web_search", "tavily", True, 3), ("datetime", "tollgate", False, 5)]
    assert render_explanation(explained)[-2:] == [
        "  web_search by tavily, or by a provider that can: 3 runs for $0.0240 at most",
        "  datetime by tollgate: 5 runs at most, free",
    ]
