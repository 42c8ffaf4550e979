"""Prompt policies also cover the engines and hosts that get texts from the gateway's tools.

Keeps C58, C73.
"""

from decimal import Decimal
from typing import Any, Final

import pytest
from msgspec.structs import replace

from tests.unit.engine.test_prompt_policies import CAREFUL
from tests.unit.routing.catalogs import catalog, principal, request
from tollgate.core.clock import SystemClock
from tollgate.core.errors import AccessError, ErrorCode, GatewayError, RequestError
from tollgate.core.prompt_policy import PromptPolicy
from tollgate.core.request import GenerationRequest, ToolChoice
from tollgate.core.server_tools import ServerTool
from tollgate.engine.rounds.server_tools import OfferedTools, offer_server_tools
from tollgate.routing.planning.planner import Planner
from tollgate.wiring.services import wire_explained_tools

PRICE: Final = {"call": Decimal("0.008"), "source": "made up", "checked": "2026-11-22"}
SEARCH: Final = ServerTool(id="web_search", field="plugins")
FETCH: Final = ServerTool(id="web_fetch", field="tools")
TIME: Final = ServerTool(id="datetime", field="tools")


def offer(
    *tools: ServerTool,
    key: str | None = "eu,no_training,no_retention",
    engine: dict[str, Any] | None = None,
    defaults: dict[str, Any] | None = None,
    **asked: Any,
) -> OfferedTools:
    search = {"engine": "tavily", "key": {"env": "TAVILY_API_KEY"}, "price": PRICE}
    found = catalog(
        server_tools={
            "web_search": {**search, **(engine or {})},
            "web_fetch": {"price": PRICE},
            "datetime": {},
        },
        **({"defaults": defaults} if defaults else {}),
    )
    work = request("acme/large")
    assert isinstance(work, GenerationRequest)
    make_tools = wire_explained_tools(SystemClock())
    return offer_server_tools(
        make_tools(found),
        Planner(found),
        replace(work, server_tools=tools, **asked),
        replace(principal(), key_policy=key),
    )


def refused(*tools: ServerTool, **fields: Any) -> GatewayError:
    with pytest.raises(GatewayError) as found:
        offer(*tools, **fields)
    return found.value


def test_c58_an_engine_that_states_nothing_is_refused_by_name() -> None:
    error = refused(TIME, SEARCH)
    assert isinstance(error, AccessError)
    assert (error.code, error.param) == (ErrorCode.PERMISSION_DENIED, "plugins")
    assert error.message == (
        "plugins: the engine tavily, which web_search uses, is not known to stay in eu, as the "
        "prompt policy of the key demands."
    )


@pytest.mark.parametrize(
    ("engine", "lacking"),
    [
        ({"countries": ("US",), "prompt_use": CAREFUL}, "to stay in eu"),
        ({"countries": ("DE",)}, "to leave prompts out of training"),
        ({"countries": ("DE",), "prompt_use": {**CAREFUL, "retention_days": 1}}, "to discard"),
    ],
)
def test_c58_an_engine_must_state_all_that_a_policy_demands(
    engine: dict[str, Any], lacking: str
) -> None:
    assert lacking in refused(SEARCH, engine=engine).message


def test_c58_an_engine_that_meets_the_policy_searches() -> None:
    offered = offer(SEARCH, TIME, engine={"countries": ("DE",), "prompt_use": CAREFUL})
    assert [tool.name for tool in offered.request.tools] == ["web_search", "datetime"]
    assert offered.left_out == ()
    assert len(offer(SEARCH, FETCH, key=None).request.tools) == 2


def test_c58_no_host_of_a_page_is_known_to_meet_a_policy() -> None:
    error = refused(FETCH, key="no_training")
    assert "a host from which web_fetch reads is not known to leave prompts out" in error.message


def test_c58_a_tool_that_a_client_always_offers_is_left_out_by_name() -> None:
    optional = replace(SEARCH, left_out_as="tools[]:web_search")
    offered = offer(optional, TIME)
    assert offered.left_out == ("tools[]:web_search",)
    assert [tool.name for tool in offered.request.tools] == ["datetime"]
    choice = ToolChoice(mode="named", name="web_search")
    assert "which web_search uses" in refused(optional, tool_choice=choice).message


def test_c58_the_policy_of_a_request_and_of_the_gateway_cover_tools() -> None:
    preferences = replace(
        request("acme/large").preferences, prompt_policy=PromptPolicy(no_retention=True)
    )
    own = refused(SEARCH, key=None, preferences=preferences)
    assert isinstance(own, RequestError)
    assert "the prompt policy of this request" in own.message
    everyone = refused(SEARCH, key=None, defaults={"prompt_policy": {"training": "none"}})
    assert "the prompt policy of this gateway" in everyone.message


def test_c58_a_search_by_the_provider_is_covered_by_its_endpoint() -> None:
    native = {"engine": None, "native": True, "key": None, "price": None}
    assert offer(SEARCH, engine=native).request.server_tools[0].by_provider
