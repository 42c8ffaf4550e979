"""Searches that a model's provider runs by itself: what is sent, held, billed, and left to us.

Keeps C36, C73.
"""

from typing import Any

import pytest

from tests.gateways import House
from tests.scripted import Scripted
from tests.scripted_tools import FETCH, QUERY, SEARCH, ScriptedTools, heard, sent, tooled
from tests.unit.providers.decoding import sse_frames
from tests.unit.routing.catalogs import endpoint, model, provider
from tests.upstream import messages_events as messages
from tollgate.core.content import ServerToolRun, Text
from tollgate.providers.ports.base import Frame
from tollgate.providers.ports.formats import codec_of

RATE = "0.01"
NATIVE = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}


def framed(events: list[dict[str, Any]]) -> list[Frame]:
    return sse_frames(map(messages.sse, events))


def searched(*words: str, searches: int) -> list[Frame]:
    """Anthropic's answer after searches of its own, as its documentation shows it; synthetic."""
    found = {"type": "web_search_result", "url": "https://a.example", "title": "A"}
    blocks = [
        messages.block(0, type="server_tool_use", id="srvtoolu_1", name="web_search", input={}),
        messages.block_stop(0),
        messages.block(1, type="web_search_tool_result", tool_use_id="srvtoolu_1", content=[found]),
        messages.block_stop(1),
        messages.text(2),
        *(messages.words(word, 2) for word in words),
        messages.block_stop(2),
    ]
    used = {"server_tool_use": {"web_search_requests": searches}}
    ended = messages.message_delta("end_turn", **used)
    return framed([messages.start(), *blocks, ended, messages.STOP])


def paused(searches: int) -> list[Frame]:
    """The answer of a provider that stops among its searches, to be sent back as it is."""
    blocks = [
        messages.block(0, type="server_tool_use", id="srvtoolu_9", name="web_search", input={}),
        messages.block_stop(0),
        messages.block(1, type="web_search_tool_result", tool_use_id="srvtoolu_9", content=[]),
        messages.block_stop(1),
    ]
    used = {"server_tool_use": {"web_search_requests": searches}}
    ended = messages.message_delta("pause_turn", **used)
    return framed([messages.start(), *blocks, ended, messages.STOP])


def asks_for(name: str, arguments: str, searches: int = 0) -> list[Frame]:
    blocks = [messages.tool(name=name), messages.arguments(arguments), messages.block_stop()]
    used = {"server_tool_use": {"web_search_requests": searches}}
    ended = messages.message_delta("tool_use", **used)
    return framed([messages.start(), *blocks, ended, messages.STOP])


async def claude(
    *answers: list[Frame], native: bool = True, priced: bool = True, **manners: Any
) -> House:
    rates = {"web_search": RATE} if priced else {}
    return await tooled(
        ScriptedTools(by_provider=True, **manners),
        near=Scripted(*answers),
        codec=codec_of("anthropic"),
        providers={
            "near": provider(codec="anthropic", dialect={"native_search": native}),
            "far": provider(),
        },
        models={"acme/large": model(endpoint("near", "m-1", **rates), supports=("tools",))},
        aliases={},
        routes={},
    )


def lines(home: House) -> dict[str, int]:
    return {line.item: line.quantity for line in home.record.lines}


async def test_c73_a_provider_searches_by_itself_and_is_paid_by_its_endpoints_price() -> None:
    home = await claude(searched("It rains.", searches=2))
    whole = (await heard(home, SEARCH)).whole
    assert whole.parts[-1] == Text(text="It rains.")
    assert not any(isinstance(part, ServerToolRun) for part in whole.parts)
    assert sent(home.near, 0)["tools"] == [NATIVE]
    assert lines(home)["provider_web_search"] == 2
    assert len(home.near.requests) == 1
    assert home.gateway.tools.ran == []


async def test_c73_a_provider_that_pauses_among_its_searches_goes_on_in_the_next_round() -> None:
    home = await claude(paused(searches=2), searched("It rains.", searches=1))
    whole = (await heard(home, SEARCH)).whole
    assert whole.parts[-1] == Text(text="It rains.")
    assert (whole.finish, home.record.finish) == ("stop", "stop")
    said = sent(home.near, 1)["messages"][-1]
    assert said["role"] == "assistant"
    kinds = [block["type"] for block in said["content"]]
    assert kinds == ["server_tool_use", "web_search_tool_result"]
    assert [each.web_searches for each in home.record.rounds] == [2, 1]


async def test_c73_a_provider_that_pauses_in_the_last_round_was_cut_short() -> None:
    home = await claude(*[paused(searches=0)] * 9)
    whole = (await heard(home, SEARCH)).whole
    assert len(home.near.requests) == home.gateway.planner.catalog.defaults.rounds_max
    assert whole.finish == "length"


@pytest.mark.parametrize(("native", "priced"), [(False, True), (True, False)])
async def test_c73_without_a_search_or_its_price_the_engine_searches(
    native: bool, priced: bool
) -> None:
    home = await claude(
        asks_for("web_search", QUERY),
        framed(messages.text_answer("It rains.")),
        native=native,
        priced=priced,
    )
    whole = (await heard(home, SEARCH)).whole
    assert [type(part) for part in whole.parts] == [ServerToolRun, Text]
    (function,) = sent(home.near, 0)["tools"]
    assert (function["name"], "type" in function) == ("web_search", False)
    assert "provider_web_search" not in lines(home)


async def test_c36_the_hold_has_every_search_of_the_provider() -> None:
    with_search = await claude(searched("x", searches=1))
    await heard(with_search, SEARCH)
    without = await claude(searched("x", searches=0), native=False)
    await heard(without, SEARCH)
    bound = with_search.record.trace.rounds
    assert bound is not None
    # Their results are in the prompt of the same round, at $1 a million.
    more_nano_usd = 5 * 10_000_000 + 1_000 * bound.result_tokens
    held = with_search.record.held_nano_usd
    assert held == without.record.held_nano_usd + more_nano_usd


async def test_a_provider_is_not_believed_more_searches_than_were_held() -> None:
    home = await claude(searched("x", searches=900))
    await heard(home, SEARCH)
    assert lines(home)["provider_web_search"] == 5


async def test_all_rounds_together_are_not_believed_more_searches_than_were_held() -> None:
    url = '{"url": "https://a.example"}'
    home = await claude(asks_for("web_fetch", url, searches=3), searched("x", searches=900))
    await heard(home, SEARCH, FETCH)
    bound = home.record.trace.rounds
    assert bound is not None
    most = bound.provider_searches_max
    assert [each.web_searches for each in home.record.rounds] == [3, most - 3]


async def test_c73_a_later_round_may_search_as_often_as_is_left() -> None:
    url = '{"url": "https://a.example"}'
    home = await claude(
        asks_for("web_fetch", url, searches=2),
        asks_for("web_fetch", url, searches=3),
        searched("x", searches=0),
    )
    await heard(home, SEARCH, FETCH)

    def offered(number: int) -> dict[str, Any]:
        return {tool["name"]: tool for tool in sent(home.near, number)["tools"]}

    assert offered(0)["web_search"] == NATIVE
    assert offered(1)["web_search"] == {**NATIVE, "max_uses": 3}
    # All are used up, and the engine's own are left.
    assert "type" not in offered(2)["web_search"]
    assert (
        sum(line.quantity for line in home.record.lines if line.item == "provider_web_search") == 5
    )
