"""Searches of the providers' own: how each format requests them, and what they count."""

from typing import Any

import pytest

from tests.unit.providers.decoding import decoded, folded, sse_frames
from tests.upstream import responses_events as responses
from tollgate.core.content import Text
from tollgate.core.errors import UpstreamError
from tollgate.core.request import GenerationRequest, Tool, UserMessage
from tollgate.core.server_tools import ServerTool, UserLocation
from tollgate.providers.codecs.openai_responses.decode import ResponsesDecoder
from tollgate.providers.ports.base import Target
from tollgate.providers.ports.formats import WIRE_FORMATS, FormatName, codec_of

TOOL = ServerTool(
    id="web_search",
    uses_max=3,
    allowed_domains=("a.example",),
    location=UserLocation(city="Berlin", country="de", timezone="Europe/Berlin"),
    by_provider=True,
)
PLACE = {
    "type": "approximate",
    "city": "Berlin",
    "country": "DE",
    "timezone": "Europe/Berlin",
}


def encoded(format_: FormatName, *tools: ServerTool, functions: tuple[Tool, ...] = ()) -> Any:
    target = Target(
        provider="p",
        model="a/m",
        upstream_model="m",
        output_tokens_max=100,
        native_search=WIRE_FORMATS[format_].native_search,
    )
    request = GenerationRequest(
        model="a/m",
        messages=(UserMessage(content=(Text(text="Hi"),)),),
        server_tools=tools,
        tools=functions,
    )
    return codec_of(format_).encode(request, target).body


def test_openai_searches_within_domains_and_calls() -> None:
    body = encoded("openai_responses", TOOL)
    assert body["tools"] == [
        {
            "type": "web_search",
            "user_location": PLACE,
            "filters": {"allowed_domains": ["a.example"]},
        }
    ]
    assert body["max_tool_calls"] == 3
    plain = encoded("openai_responses", ServerTool(id="web_search", by_provider=True))
    assert plain["tools"] == [{"type": "web_search"}]
    assert "max_tool_calls" not in plain


def test_anthropic_searches_within_domains_and_uses() -> None:
    assert encoded("anthropic", TOOL)["tools"] == [
        {
            "type": "web_search_20250305",
            "name": "web_search",
            "user_location": PLACE,
            "max_uses": 3,
            "allowed_domains": ["a.example"],
        }
    ]
    blocked = ServerTool(id="web_search", blocked_domains=("b.example",), by_provider=True)
    (tool,) = encoded("anthropic", blocked)["tools"]
    assert tool["blocked_domains"] == ["b.example"]


def test_google_searches() -> None:
    assert encoded("gemini", TOOL)["tools"] == [{"googleSearch": {}}]


@pytest.mark.parametrize("format_", ["openai_responses", "anthropic"])
def test_functions_stand_beside_a_search(format_: FormatName) -> None:
    tools = encoded(format_, TOOL, functions=(Tool(name="now"),))["tools"]
    assert tools[0]["name"] == "now"
    assert len(tools) == 2
    assert "tools" not in encoded(format_)


def searched(*actions: str | None) -> list[bytes]:
    """A stream of OpenAI's with searches before its text, after its schema; synthetic."""
    calls = [
        {
            "type": "web_search_call",
            "id": f"ws_{n}",
            "status": "completed",
            **({"action": {"type": action}} if action else {}),
        }
        for n, action in enumerate(actions)
    ]
    frames = [responses.created()]
    for n, call in enumerate(calls):
        pending = {"type": "web_search_call", "id": call["id"], "status": "in_progress"}
        frames += [
            responses.added(pending, n),
            responses.event("web_search_call.in_progress", output_index=n, item_id=call["id"]),
            responses.event("web_search_call.searching", output_index=n, item_id=call["id"]),
            responses.event("web_search_call.completed", output_index=n, item_id=call["id"]),
            responses.done(call, n),
        ]
    said = responses.message("Found.")
    last = len(calls)
    return [*frames, responses.done(said, last), responses.completed(*calls, said)]


def test_openais_searches_are_counted_each_once_and_other_actions_are_free() -> None:
    decoder = ResponsesDecoder("openai", signer=None, searches=True)
    answer = folded(decoded(decoder, sse_frames(searched("search", "open_page", None, "search"))))
    assert answer.usage.web_searches == 3
    assert answer.parts == (Text(text="Found."),)


def test_a_search_that_was_not_requested_is_an_error() -> None:
    decoder = ResponsesDecoder("openai", signer=None)
    with pytest.raises(UpstreamError, match="not requested"):
        decoded(decoder, sse_frames(searched("search")))
