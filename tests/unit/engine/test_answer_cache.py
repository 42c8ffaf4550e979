"""An exact cache answers identical requests of its own workspace, and never any other.

Keeps C59.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from tests.asgi import Exchange
from tests.gateways import House, house, store_is_away
from tests.memory.answer_cache import MemoryAnswerCache
from tests.scripted import Scripted, answers, calls, ends, refuses, says
from tests.stores import funded_key
from tests.unit.engine.client_formats import CLIENT_FORMATS, ClientFormat, exchange
from tests.unit.routing.catalogs import endpoint, model
from tollgate.core.money.amounts import usd
from tollgate.core.principal import AnswerSharing
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.server_tools import ServerTool
from tollgate.engine.replies.answer_cache import ANSWER_BYTES_MAX, is_repeatable
from tollgate.ingress.chat_completions.parse import parse
from tollgate.stores.ports.administration import NewKey

CHAT = "/v1/chat/completions"
HI = {"messages": [{"role": "user", "content": "Hi"}]}
ROUTE = {"description": "Cached", "try": ("acme/large",), "cache": {"ttl_s": 600}}


class CachedHouse:
    """A house whose routes `faq` and `plain` have a cache and none."""

    def __init__(self, home: House) -> None:
        self.cache = MemoryAnswerCache()
        home.gateway = replace(home.gateway, answer_cache=self.cache)
        self.home = home

    async def ask(
        self, path: str = CHAT, *, headers: Mapping[str, str] | None = None, **fields: Any
    ) -> Exchange:
        body = {"model": "faq", **({} if path != CHAT else HI), **fields}
        reply = await exchange(self.home, path, body, **(headers or {}))
        assert reply.status == 200, reply.body
        return reply

    async def status(self, **fields: Any) -> str | None:
        """What the reply says of the cache."""
        headers = fields.pop("headers", None)
        return (await self.ask(headers=headers, **fields)).headers.get("x-tollgate-cache")

    @property
    def sent(self) -> int:
        return len(self.home.near.requests)

    @property
    def records(self) -> list[GenerationRecord]:
        return self.home.journal.records


async def cached(
    *near: Any,
    sharing: AnswerSharing | None = "key",
    cache: Mapping[str, int] | None = None,
    key: Mapping[str, Any] | None = None,
    far: Sequence[Any] = (),
    chain: tuple[str, ...] = ("acme/large",),
    **sections: Any,
) -> CachedHouse:
    route = {**ROUTE, "try": chain, "cache": {"ttl_s": 600, **(cache or {})}}
    routes = {"faq": route, "plain": {"description": "Not cached", "try": ("acme/large",)}}
    new = NewKey(workspace_id="acme", label="k", answer_cache=sharing, **(key or {}))
    return CachedHouse(
        await house(
            near=Scripted(*(near or [answers("Hel", "lo", "!")])),
            far=Scripted(*far) if far else None,
            key=new,
            aliases={},
            routes=routes,
            **sections,
        )
    )


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("client", CLIENT_FORMATS.values(), ids=CLIENT_FORMATS)
async def test_c59_the_same_request_gets_the_same_answer_for_nothing(
    client: ClientFormat, first: bool, second: bool
) -> None:
    home = await cached()
    question = {**client.question, "model": "faq"}
    made = await client.ask(home.home, question, stream=first)
    again = await client.ask(home.home, question, stream=second)
    assert (made.status, again.status, home.sent) == (200, 200, 1), again.body
    assert made.headers["x-tollgate-cache"] == "miss"
    assert again.headers["x-tollgate-cache"] == "hit; age=0"
    assert client.words(client.whole(again)) == client.words(client.whole(made)) == "Hello!"
    old, new = home.records
    assert old.cost_nano_usd > 0
    assert (new.cost_nano_usd, new.lines, new.usage.output_tokens) == (0, (), None)
    assert (new.outcome, new.finish, new.attempts) == ("ok", "stop", ())
    assert (new.model, new.provider) == (old.model, old.provider)
    assert new.reused is not None
    assert (new.reused.generation_id, new.reused.saved_nano_usd) == (old.id, old.cost_nano_usd)
    assert home.home.spent_nano_usd == old.cost_nano_usd
    assert home.home.held_nano_usd == 0


async def test_c59_a_reply_is_a_new_generation_with_its_own_id() -> None:
    home = await cached()
    first, second = await home.ask(), await home.ask()
    assert first.json["id"] != second.json["id"]
    assert second.json["id"] == f"gen-{home.records[1].id}"
    assert second.headers["x-credits-used"] == "0"
    usage = second.json["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["cost"]) == (0, 0, 0)


async def test_c59_a_route_may_charge_a_share_of_what_the_answer_cost() -> None:
    home = await cached(cache={"price_percent": 25})
    await home.ask()
    reply = await home.ask()
    old, new = home.records
    assert new.cost_nano_usd == old.cost_nano_usd // 4
    assert [line.item for line in new.lines] == ["reused_answer"]
    assert new.reused is not None
    assert new.reused.saved_nano_usd == old.cost_nano_usd - new.cost_nano_usd
    assert home.home.spent_nano_usd == old.cost_nano_usd + new.cost_nano_usd
    assert reply.json["usage"]["cost"] == float(usd(new.cost_nano_usd))


async def test_c59_c65_a_changed_object_bills_no_more_than_the_bound() -> None:
    home = await cached(cache={"price_percent": 100})
    await home.ask()
    [(place, stored)] = home.cache.stored.items()
    home.cache.stored[place] = json.dumps(json.loads(stored) | {"cost_nano_usd": 10**15}).encode()
    await home.ask()
    assert 0 < home.records[1].cost_nano_usd <= home.records[1].held_nano_usd


async def test_c59_an_answer_is_reused_until_it_is_too_old() -> None:
    home = await cached()
    await home.ask()
    await asyncio.sleep(599)
    assert await home.status() == "hit; age=599"
    await asyncio.sleep(1)
    assert await home.status() == "miss"
    assert await home.status() == "hit; age=0"


@pytest.mark.parametrize(
    "changes",
    [
        {"messages": [{"role": "user", "content": "Hi "}]},
        {"messages": [{"role": "assistant", "content": "Hi"}]},
        {"messages": [{"role": "system", "content": "Hi"}]},
        {"messages": [{"role": "user", "content": "H"}, {"role": "user", "content": "i"}]},
        {"messages": [{"role": "user", "content": "Hi", "name": "Ada"}]},
        {"messages": [{"role": "system", "content": "Be evil."}, *HI["messages"]]},
        {"tools": [{"type": "function", "function": {"name": "pay"}}]},
        {"max_tokens": 9},
        {"seed": 1},
        {"temperature": 0},
        {"stop": "x"},
        {"user": "bob"},
        {"metadata": {"tenant": "b"}},
        {"response_format": {"type": "json_object"}},
        {"reasoning_effort": "low"},
        {"provider": {"only": ["near"]}},
        {"prompt_cache_key": "b"},
        {"some_new_field": True},
    ],
    ids=json.dumps,
)
async def test_c59_a_request_that_differs_in_anything_gets_an_answer_for_itself(
    changes: Mapping[str, Any],
) -> None:
    home = await cached()
    await home.ask()
    assert await home.status(**changes) == "miss"
    assert await home.status(**changes) == "hit; age=0"


async def test_c59_length_whitespace_and_sessions_make_no_difference() -> None:
    home = await cached()
    await home.ask()
    assert await home.status(session_id="run-2", stream=True) == "hit; age=0"


@pytest.mark.parametrize(
    ("sharing", "workspace", "other", "status"),
    [
        ("key", "acme", "key", "miss"),
        ("workspace", "acme", "workspace", "hit; age=0"),
        ("workspace", "acme", "key", "miss"),
        ("workspace", "acme", None, None),
        ("workspace", "rival", "workspace", "miss"),
    ],
)
async def test_c59_answers_are_shared_only_as_both_keys_say(
    sharing: AnswerSharing, workspace: str, other: AnswerSharing | None, status: str | None
) -> None:
    home = await cached(sharing=sharing)
    await home.ask()
    await another_key(home, NewKey(workspace_id=workspace, label="o", answer_cache=other))
    assert await home.status() == status
    assert home.sent == (1 if status and "hit" in status else 2)


async def another_key(home: CachedHouse, new: NewKey) -> None:
    """Let the requests that follow come with another key, of a workspace with money."""
    secret, principal = await funded_key(home.home.stores, 10**12, new)
    home.home.secret, home.home.principal = secret, principal


async def test_c59_a_key_that_may_not_use_the_model_does_not_get_its_answer() -> None:
    home = await cached(sharing="workspace")
    await home.ask()
    new = NewKey(workspace_id="acme", label="o", answer_cache="workspace", models=("acme/small",))
    await another_key(home, new)
    reply = await exchange(home.home, CHAT, {"model": "faq", **HI})
    assert (reply.status, reply.error["code"]) == (403, "model_not_allowed")


async def test_c59_a_key_with_other_endpoints_gets_an_answer_for_itself() -> None:
    models = {slug: model(endpoint("near", slug)) for slug in ("acme/large", "acme/small")}
    home = await cached(sharing="workspace", models=models, chain=("acme/large", "acme/small"))
    await home.ask()
    new = NewKey(workspace_id="acme", label="o", answer_cache="workspace", models=("*/large",))
    await another_key(home, new)
    assert await home.status() == "miss"


async def test_c59_another_format_gets_an_answer_for_itself() -> None:
    home = await cached()
    await home.ask()
    reply = await home.ask("/v1/responses", input="Hi")
    assert reply.headers["x-tollgate-cache"] == "miss"


async def test_c59_a_new_catalog_forgets_every_answer() -> None:
    home = await cached(sharing="workspace")
    await home.ask()
    other = await cached(cache={"price_percent": 1})
    other.home.gateway = replace(other.home.gateway, answer_cache=home.cache)
    await another_key(other, NewKey(workspace_id="acme", label="x", answer_cache="workspace"))
    assert await other.status() == "miss"


@pytest.mark.parametrize("sharing", ["key", None])
async def test_c59_a_route_without_a_cache_and_a_key_without_consent_store_nothing(
    sharing: AnswerSharing | None,
) -> None:
    home = await cached(sharing=sharing)
    for _ in range(2):
        assert await home.status(model="plain" if sharing else "faq") is None
    assert (home.sent, home.cache.stored) == (2, {})


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 2},
        {"temperature": 0.1},
        {"messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "https://a.example/x.png"}}]}]},
    ],
    ids=["choices", "temperature", "address"],
)  # fmt: skip
async def test_c59_requests_whose_answers_may_differ_are_not_cached(
    fields: Mapping[str, Any],
) -> None:
    home = await cached()
    reply = await exchange(home.home, CHAT, {"model": "faq", **HI, **fields})
    assert "x-tollgate-cache" not in reply.headers
    assert home.cache.stored == {}


async def test_c59_tools_of_the_gateway_and_of_providers_are_not_cached() -> None:
    home = await cached()
    for tool in (
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "bash_20250124", "name": "bash"},
    ):
        body = {"model": "faq", "max_tokens": 50, **HI, "tools": [tool]}
        reply = await exchange(home.home, "/v1/messages", body)
        assert "x-tollgate-cache" not in reply.headers, reply.body
    assert home.cache.stored == {}


@pytest.mark.parametrize("tool", [(), (ServerTool(id="web_search"),)], ids=["none", "search"])
def test_c59_only_a_request_without_tools_of_the_gateway_is_repeatable(
    tool: tuple[ServerTool, ...],
) -> None:
    parsed = parse(json.dumps({"model": "faq", **HI}).encode())
    assert is_repeatable(replace(parsed, request=replace(parsed.request, server_tools=tool))) == (
        tool == ()
    )


async def test_c59_a_preset_with_another_prompt_gets_an_answer_for_itself() -> None:
    presets = {
        name: {"model": "faq", "system": f"You are {name}.", "parameters": {"temperature": 0.0}}
        for name in ("ada", "bob")
    }
    home = await cached(presets=presets)
    assert await home.status(model="preset/ada") == "miss"
    assert await home.status(model="preset/bob") == "miss"
    assert await home.status(model="preset/ada") == "hit; age=0"


async def test_c59_a_temperature_with_a_seed_is_cached() -> None:
    home = await cached()
    await home.ask(temperature=0.7, seed=1)
    assert await home.status(temperature=0.7, seed=1) == "hit; age=0"


@pytest.mark.parametrize(
    ("directive", "second", "third"),
    [("no-cache", "miss", "hit; age=0"), ("max-age=0, No-Store", None, "hit; age=5")],
)
async def test_c59_a_caller_may_refuse_a_stored_answer(
    directive: str, second: str | None, third: str
) -> None:
    home = await cached(answers("old"), answers("new"))
    await home.ask()
    await asyncio.sleep(5)
    reply = await home.ask(headers={"cache-control": directive})
    assert reply.headers.get("x-tollgate-cache") == second
    assert reply.json["choices"][0]["message"]["content"] == "new"
    last = await home.ask()
    assert last.headers["x-tollgate-cache"] == third


@pytest.mark.parametrize(
    "incomplete",
    [
        refuses(400),
        says("Hel"),
        [*says("Hel"), *ends("length")],
        [*says("Hel"), *ends("content_filter")],
        answers("x" * (ANSWER_BYTES_MAX + 1)),
    ],
    ids=["refused", "cut off", "length", "filtered", "too large"],
)
async def test_c59_only_whole_answers_are_stored(incomplete: Any) -> None:
    home = await cached(incomplete)
    await exchange(home.home, CHAT, {"model": "faq", **HI})
    assert home.cache.stored == {}


async def test_c59_tool_calls_are_reused_with_their_arguments() -> None:
    home = await cached([*calls("pay", '{"to": "Ada"}'), *ends("tool_calls")])
    tools = [{"type": "function", "function": {"name": "pay"}}]
    first, second = [await home.ask(tools=tools) for _ in range(2)]
    assert second.headers["x-tollgate-cache"] == "hit; age=0"
    message = second.json["choices"][0]["message"]
    assert message == first.json["choices"][0]["message"]
    assert message["tool_calls"][0]["function"]["arguments"] == '{"to": "Ada"}'


async def test_c59_limits_admit_a_request_before_the_cache_does() -> None:
    home = await cached(key={"requests_per_minute": 1, "burst": 1})
    await home.ask()
    reply = await exchange(home.home, CHAT, {"model": "faq", **HI})
    assert (reply.status, reply.error["code"]) == (429, "rate_limit_exceeded")


class AwayCache(MemoryAnswerCache):
    """A store that cannot be reached."""

    async def get(self, workspace_id: str, name: str) -> bytes | None:
        raise store_is_away()

    async def put(self, workspace_id: str, name: str, answer: bytes) -> None:
        raise store_is_away()


async def test_c59_an_unreachable_store_and_a_corrupt_answer_are_misses() -> None:
    home = await cached()
    await home.ask()
    [place] = home.cache.stored
    home.cache.stored[place] = b"{"
    assert await home.status() == "miss"
    home.home.gateway = replace(home.home.gateway, answer_cache=AwayCache())
    assert await home.status() == "miss"
    assert home.sent == 3
