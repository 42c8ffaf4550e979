"""The gateway's tools as three formats switch them on.

Keeps C20, C73, C80.
"""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.ingress.requests import WEATHER, body, refusal, understood
from tests.unit.ingress.responses_samples import ASKED
from tests.unit.ingress.responses_samples import FORMAT as RESPONSES
from tests.unit.ingress.test_messages_render import FORMAT as MESSAGES
from tollgate.core.documents.reading import DocumentOptions
from tollgate.core.errors import RequestError
from tollgate.core.request import ToolChoice
from tollgate.core.server_tools import ServerTool, UserLocation
from tollgate.ingress.base import ParsedCall

PLACE = {"type": "approximate", "city": "Bern", "country": "ch", "timezone": "Europe/Zurich"}
BERN = UserLocation(city="Bern", country="CH", timezone="Europe/Zurich")


def response(**fields: Any) -> ParsedCall:
    return RESPONSES.parse(json.dumps(ASKED | fields).encode())


def message(**fields: Any) -> ParsedCall:
    asked = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}
    return MESSAGES.parse(json.dumps(asked | fields).encode())


def refused_field(parse: Any, **fields: Any) -> str | None:
    with pytest.raises(RequestError) as refused:
        parse(**fields)
    return refused.value.param


@pytest.mark.parametrize("id_", ["web_search", "web_fetch", "datetime", "image"])
def test_c73_a_plugin_switches_a_tool_on(id_: Any) -> None:
    call = understood(plugins=[{"id": id_}])
    assert call.request.server_tools == (ServerTool(id=id_, field="plugins[0].id"),)
    assert call.request.capabilities == {"tools"}
    assert call.ignored == ()


def test_c73_a_plugin_has_options() -> None:
    plugin = {
        "id": "web_search",
        "events": True,
        "max_results": 7,
        "max_uses": 2,
        "allowed_domains": ["Example.com"],
        "include_domains": ["example.com", "example.org"],
        "exclude_domains": ["bad.example.org"],
        "user_location": PLACE,
        "engine": "exa",
    }
    call = understood(plugins=[plugin])
    assert call.request.server_tools == (
        ServerTool(
            id="web_search",
            uses_max=2,
            results_max=7,
            allowed_domains=("example.com", "example.org"),
            blocked_domains=("bad.example.org",),
            location=BERN,
            events=True,
            field="plugins[0].id",
        ),
    )
    assert call.ignored == ("plugins[].engine",)


def test_c73_web_is_the_older_name_of_search_and_fetch() -> None:
    tools = understood(plugins=[{"id": "web", "max_uses": 3}]).request.server_tools
    assert [(tool.id, tool.uses_max) for tool in tools] == [("web_search", 3), ("web_fetch", 3)]


def test_c73_a_plugin_that_is_not_enabled_is_none() -> None:
    off = [{"id": "web_search", "enabled": False}, {"id": "web_search", "enabled": True}]
    assert len(understood(plugins=off).request.server_tools) == 1
    assert understood(plugins=[]).request.server_tools == ()


def test_c20_hi_tool_events_means_the_events_of_every_plugin() -> None:
    asked = {"plugins": [{"id": "web"}, {"id": "datetime", "events": False}]}
    tools = understood(**asked, hi_tool_events=True).request.server_tools
    assert [tool.events for tool in tools] == [True, True, True]
    assert not any(tool.events for tool in understood(**asked).request.server_tools)
    assert understood(hi_tool_events=True).ignored == ()


def test_c20_openais_options_of_a_search_are_the_plugin() -> None:
    location = {"type": "approximate", "approximate": PLACE}
    options = {"search_context_size": "high", "user_location": location}
    assert understood(web_search_options=options).request.server_tools == (
        ServerTool(id="web_search", results_max=10, location=BERN, field="web_search_options"),
    )
    assert len(understood(web_search_options={}).request.server_tools) == 1


@pytest.mark.parametrize(
    ("plugins", "param", "words"),
    [
        ([{"id": "websearch"}], "plugins[0].id", "Did you mean 'web_search'?"),
        ([{"id": "fusion"}], "plugins[0].id", "must be one of web_search, web_fetch"),
        ([{}], "plugins[0].id", "is required"),
        ([{"id": "web"}, {"id": "web_fetch"}], "plugins[1].id", "after plugins[0].id"),
        ([{"id": "web_search", "max_uses": 0}], "plugins[0].max_uses", "at least 1"),
        ([{"id": "web_search", "max_results": 51}], "plugins[0].max_results", "at most 50"),
        ([{"id": "datetime"}] * 17, "plugins", "at most 16"),
        ("web", "plugins", "an array"),
    ],
)
def test_c73_another_plugin_is_refused_by_its_field(plugins: Any, param: str, words: str) -> None:
    error = refusal(body(plugins=plugins))
    assert error.param == param
    assert words in error.message
    assert not error.message.endswith(("?.", ".."))


@pytest.mark.parametrize(
    "domain",
    [
        "https://example.com",
        "example.com/a",
        "example.com:80",
        "*.example.com",
        "example",
        "exa mple.com",
        "-a.example.com",
        "bücher.example",
        ".example.com",
        "example.com.",
        "a" * 64 + ".example.com",
        "a.example.com\n",
        "",
    ],
)
def test_c73_what_is_no_domain_is_refused_by_its_field(domain: str) -> None:
    plugin = {"id": "web_search", "blocked_domains": ["example.com", domain]}
    assert refusal(body(plugins=[plugin])).param == "plugins[0].blocked_domains[1]"


def test_c73_a_search_is_switched_on_once() -> None:
    both = {"plugins": [{"id": "web_search"}], "web_search_options": {}}
    assert refusal(body(**both)).param == "web_search_options"


def test_c72_pdf_switches_the_reading_of_documents_on() -> None:
    options = {"engine": "text", "pages_max": 7}
    reading = DocumentOptions(engine="text", pages_max=7)
    asked = understood(plugins=[{"id": "pdf", **options}])
    assert asked.request.documents == replace(reading, field="plugins[0].engine")
    assert (asked.request.server_tools, asked.ignored) == ((), ())
    tool = {"type": "pdf", **options}
    for call in (response(tools=[tool]), message(tools=[tool])):
        assert call.request.documents == replace(reading, field="tools[0].type")
        assert (call.request.server_tools, call.ignored) == ((), ())
    assert understood(plugins=[{"id": "pdf"}]).request.documents == DocumentOptions(
        field="plugins[0].id"
    )
    assert understood(plugins=[{"id": "pdf", "enabled": False}]).request.documents is None
    for plain in (understood(), response(), message()):
        assert plain.request.documents is None


def test_c72_a_wrong_option_of_pdf_is_refused_by_its_field() -> None:
    for options, field in (
        ({"engine": "mistral-ocr"}, "engine"),
        ({"pages_max": 0}, "pages_max"),
        ({"pages_max": 1_001}, "pages_max"),
    ):
        wrong: Any = options
        assert refusal(body(plugins=[{"id": "pdf", **wrong}])).param == f"plugins[0].{field}"
        for parse in (response, message):
            assert refused_field(parse, tools=[{"type": "pdf", **wrong}]) == f"tools[0].{field}"
    assert refusal(body(plugins=[{"id": "pdf"}, {"id": "pdf"}])).param == "plugins[1].id"
    for parse in (response, message):
        assert refused_field(parse, tools=[{"type": "pdf"}] * 2) == "tools[1].type"


@pytest.mark.parametrize("mode", ["auto", "none", "required"])
def test_c73_a_rule_on_calls_holds_for_the_gateways_tools_alone(mode: Any) -> None:
    plugins = [{"id": "web_search"}]
    rule = ToolChoice(mode=mode)
    assert understood(plugins=plugins, tool_choice=mode).request.tool_choice == rule
    tools = [{"type": "web_search"}]
    assert response(tools=tools, tool_choice=mode).request.tool_choice == rule


def test_c73_a_choice_may_name_a_tool_of_the_gateways() -> None:
    rule = ToolChoice(mode="named", name="web_search")
    named = {"type": "function", "function": {"name": "web_search"}}
    asked: dict[str, Any] = {"tools": [WEATHER], "tool_choice": named}
    assert understood(plugins=[{"id": "web"}], **asked).request.tool_choice == rule
    assert refusal(body(plugins=[{"id": "datetime"}], **asked)).param == (
        "tool_choice.function.name"
    )
    tools = [{"type": "web_search_preview"}]
    assert response(tools=tools, tool_choice=tools[0]).request.tool_choice == rule
    assert refused_field(response, tools=tools, tool_choice={"type": "datetime"}) == (
        "tool_choice.type"
    )
    tool = {"type": "web_search_20250305", "name": "web_search"}
    chosen = {"type": "tool", "name": "web_search"}
    assert message(tools=[tool], tool_choice=chosen).request.tool_choice == rule
    fetch = {"type": "web_fetch_20250910", "name": "web_fetch"}
    assert refused_field(message, tools=[fetch], tool_choice=chosen) == "tool_choice.name"


@pytest.mark.parametrize(
    ("named", "kept"), [(["get_weather"], []), (["get_weather", "datetime"], ["datetime"])]
)
def test_c73_allowed_tools_of_chat_hold_for_the_gateways_too(
    named: list[str], kept: list[str]
) -> None:
    allowed = [{"type": "function", "function": {"name": name}} for name in named]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": allowed}}
    plugins = [{"id": "web"}, {"id": "datetime"}]
    request = understood(plugins=plugins, tools=[WEATHER], tool_choice=choice).request
    assert [tool.name for tool in request.tools] == ["get_weather"]
    assert [tool.id for tool in request.server_tools] == kept


def test_c73_parallel_calls_are_ruled_out_for_the_gateways_tools_alone() -> None:
    chat = understood(plugins=[{"id": "web"}], parallel_tool_calls=False)
    other = response(tools=[{"type": "web_search"}], parallel_tool_calls=False)
    assert chat.request.parallel_tool_calls is False
    assert other.request.parallel_tool_calls is False


@pytest.mark.parametrize(
    ("type_", "id_"),
    [
        ("web_search", "web_search"),
        ("web_search_2025_08_26", "web_search"),
        ("web_search_preview", "web_search"),
        ("web_search_preview_2025_03_11", "web_search"),
        ("web_fetch", "web_fetch"),
        ("datetime", "datetime"),
        ("image", "image"),
        ("image_generation", "image"),
    ],
)
def test_c80_a_type_of_a_tool_in_responses_switches_it_on(type_: str, id_: Any) -> None:
    call = response(tools=[{"type": type_, "events": True}])
    left_out_as = f"tools[]:{type_}"
    assert call.request.server_tools == (
        ServerTool(id=id_, field="tools[0].type", left_out_as=left_out_as),
    )
    # A model without tools answers too, without it.
    assert call.request.capabilities == frozenset()
    assert call.ignored == ()


def test_c80_a_search_in_responses_has_openais_options() -> None:
    filters = {"allowed_domains": ["example.com"], "blocked_domains": ["bad.example.com"]}
    tool = {
        "type": "web_search",
        "filters": filters,
        "user_location": PLACE,
        "search_context_size": "low",
        "external_web_access": True,
        "max_uses": 4,
        "search_content_types": ["text"],
    }
    call = response(tools=[tool], include=["web_search_call.action.sources"])
    assert call.request.server_tools == (
        ServerTool(
            id="web_search",
            uses_max=4,
            results_max=3,
            allowed_domains=("example.com",),
            blocked_domains=("bad.example.com",),
            location=BERN,
            field="tools[0].type",
            left_out_as="tools[]:web_search",
        ),
    )
    assert call.ignored == ("tools[].search_content_types",)


@pytest.mark.parametrize(("stated", "limit"), [(None, 3), (9, 3), (2, 2)])
def test_c80_max_tool_calls_of_responses_limits_the_runs(stated: int | None, limit: int) -> None:
    tools = [{"type": "web_search", "max_uses": 3}]
    call = response(tools=tools, max_tool_calls=stated)
    assert [tool.uses_max for tool in call.request.server_tools] == [limit]
    assert call.ignored == ()


def test_c80_max_tool_calls_of_none_switches_all_off_and_of_two_tools_is_named() -> None:
    tools = [{"type": "web_search"}, {"type": "datetime"}]
    assert response(tools=tools, max_tool_calls=0).request.server_tools == ()
    assert response(tools=tools, max_tool_calls=1).ignored == ("max_tool_calls",)
    assert refused_field(response, tools=tools, max_tool_calls=-1) == "max_tool_calls"


def test_c80_a_search_without_the_web_is_left_out() -> None:
    call = response(tools=[{"type": "web_search", "external_web_access": False}])
    assert call.request.server_tools == ()
    assert call.ignored == ("tools[]:web_search",)


def test_c80_allowed_tools_hold_for_the_gateways_too() -> None:
    tools = [{"type": "web_search"}, {"type": "datetime"}]
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "datetime"}]}
    request = response(tools=tools, tool_choice=allowed).request
    assert [tool.id for tool in request.server_tools] == ["datetime"]
    assert request.tool_choice == ToolChoice(mode="required")


@pytest.mark.parametrize(
    ("tools", "param"),
    [
        ([{"type": "web_search"}, {"type": "web_search_preview"}], "tools[1].type"),
        ([{"type": "web_search", "filters": {"allowed_domains": ["a b"]}}], None),
        ([{"type": "web_search", "search_context_size": "huge"}], "tools[0].search_context_size"),
        ([{"type": "web_search", "user_location": {"country": "CHE"}}], None),
    ],
)
def test_c80_a_tool_of_responses_is_refused_by_its_field(tools: Any, param: str | None) -> None:
    fields = {
        None: ("tools[0].filters.allowed_domains[0]", "tools[0].user_location.country"),
    }.get(param, (param,))
    assert refused_field(response, tools=tools) in fields


@pytest.mark.parametrize(
    ("type_", "id_"),
    [
        ("web_search_20250305", "web_search"),
        ("web_search_20260209", "web_search"),
        ("web_fetch_20250910", "web_fetch"),
        ("web_search", "web_search"),
        ("datetime", "datetime"),
        ("image", "image"),
    ],
)
def test_c80_a_type_of_a_tool_in_messages_switches_it_on(type_: str, id_: Any) -> None:
    call = message(tools=[{"type": type_, "name": id_, "citations": {"enabled": True}}])
    assert call.request.server_tools == (ServerTool(id=id_, field="tools[0].type"),)
    assert call.request.native is None
    assert call.ignored == ()


def test_c80_a_search_in_messages_has_anthropics_options() -> None:
    tool = {
        "type": "web_search_20250305",
        "name": "web_search",
        "max_uses": 8,
        "allowed_domains": ["example.com"],
        "user_location": PLACE,
        "max_content_tokens": 9,
    }
    call = message(tools=[tool])
    assert call.request.server_tools == (
        ServerTool(
            id="web_search",
            uses_max=8,
            allowed_domains=("example.com",),
            location=BERN,
            field="tools[0].type",
        ),
    )
    assert call.ignored == ("tools[].max_content_tokens",)


@pytest.mark.parametrize(
    ("tools", "param"),
    [
        ([{"type": "web_search_20250305", "name": "search"}], "tools[0].name"),
        ([{"type": "web_search"}, {"type": "web_search_20250305"}], "tools[1].type"),
        (
            [{"type": "web_search", "allowed_domains": ["a.b"], "blocked_domains": ["b.c"]}],
            "tools[0].blocked_domains",
        ),
        ([{"type": "code_execution_20250825", "name": "code_execution"}], "tools[0].type"),
        ([{"type": "web_search_2025", "name": "web_search"}], "tools[0].type"),
    ],
)
def test_c80_a_tool_of_messages_is_refused_by_its_field(tools: Any, param: str) -> None:
    assert refused_field(message, tools=tools) == param
