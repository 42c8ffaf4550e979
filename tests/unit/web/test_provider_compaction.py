"""A provider that compacts conversations itself is let, and only it reads the result.

Keeps C75.
"""

from dataclasses import replace
from typing import Any

import pytest

from tests.compacting import COMPACT, RESPONSES, Client, frames
from tests.gateways import FUNDS_NANO_USD, house
from tests.scripted import Scripted, frame
from tests.stores import TESTER, funded_key
from tests.unit.routing.catalogs import endpoint, model, provider
from tollgate.providers.ports.formats import codec_of
from tollgate.stores.ports.administration import NewKey

TRIGGER = {"type": "compaction_trigger"}
LONG_AGO = [
    {"role": "developer", "content": "Be curt."},
    {"role": "user", "content": "Draw a bridge."},
    {"role": "assistant", "content": "It is drawn."},
    {"role": "user", "content": "Make it blue."},
]
MORE = {"role": "user", "content": "And longer."}
THEIRS = "gAAAAA-of-the-provider"
ITEM = {"type": "compaction", "id": "cmp_1", "encrypted_content": THEIRS}
KEPT = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
COMPACTION = {
    "id": "resp_1",
    "object": "response.compaction",
    "created_at": 1,
    "output": [KEPT, ITEM],
    "usage": {"input_tokens": 40, "output_tokens": 7, "total_tokens": 47},
}
RULE = [{"type": "compaction", "compact_threshold": 1_000}]


def said(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "id": "resp_2",
        "object": "response",
        "status": "completed",
        "output": [{"type": "message", "role": "assistant", "content": content}],
        "usage": {"input_tokens": 9, "output_tokens": 3},
    }


async def open_openai(*replies: Any) -> Client:
    """Two providers of OpenAI's format, of which `near` compacts, and a route over both."""
    dialect = {"compacts": True, "developer_role": True, "refuses": ()}
    offer = endpoint("near", "m-1") | {"dialect": dialect}
    home = await house(
        near=Scripted(*([frame(reply)] for reply in replies)),
        far=Scripted([frame(said("Goal: a bridge."))], [frame(said("Yes."))]),
        codec=codec_of("openai_responses"),
        providers={
            "near": provider(codec="openai_responses"),
            "far": provider(codec="openai_responses"),
        },
        models={
            "acme/own": model(offer, supports=("tools",)),
            "acme/other": model(endpoint("far", "m-2"), supports=("tools",)),
        },
        aliases={},
        routes={"both": {"description": "Both", "try": ("acme/own", "acme/other")}},
    )
    key = NewKey(workspace_id="acme", label="agent")
    secret = (await home.stores.keys.create(key, by=TESTER)).secret
    return Client(home, secret, model="acme/own")


def theirs_or_text(item: dict[str, Any]) -> Any:
    return item.get("encrypted_content") or item["content"]


def sent(client: Client, number: int = -1) -> Any:
    return client.home.near.requests[number]


async def test_c75_the_provider_compacts_and_reads_its_item_back() -> None:
    client = await open_openai(COMPACTION, said("It is blue."))
    reply = await client.ask(COMPACT, LONG_AGO, prompt_cache_key="bridge", tools=[])
    assert reply.status == 200, reply.body
    assert sent(client).path == "/responses/compact"
    assert sent(client).body == {
        "model": "m-1",
        "input": LONG_AGO,
        "prompt_cache_key": "bridge",
    }
    # The user's messages, and the provider's item, which only this workspace can send back.
    item = reply.json["output"][-1]
    assert [each["type"] for each in reply.json["output"]] == ["message", "message", "compaction"]
    assert item["encrypted_content"].startswith("tollgate3.")
    assert THEIRS not in item["encrypted_content"]
    reply = await client.ask(RESPONSES, [*reply.json["output"], MORE])
    assert reply.status == 200, reply.body
    # The instructions are kept, as they are not among the items that a client gets back.
    assert [theirs_or_text(each) for each in sent(client).body["input"]] == [
        "Draw a bridge.",
        "Make it blue.",
        "Be curt.",
        THEIRS,
        "And longer.",
    ]


async def test_c75_it_is_one_generation_with_its_hold_and_bill() -> None:
    client = await open_openai(COMPACTION)
    reply = await client.ask(COMPACT, LONG_AGO)
    record = client.home.record
    usage = record.usage
    assert (usage.input_tokens, usage.output_tokens) == (40, 7)
    assert record.ingress_format == "responses_compact"
    assert record.cost_nano_usd == client.home.spent_nano_usd == 40 * 1000 + 7 * 2000
    assert record.held_nano_usd > record.cost_nano_usd
    assert reply.json["usage"]["cost"] == record.cost_nano_usd / 1e9


@pytest.mark.parametrize("stream", [False, True])
async def test_c75_a_trigger_is_answered_by_one_item_again_and_again(stream: bool) -> None:
    client = await open_openai(COMPACTION, COMPACTION)
    items: list[Any] = LONG_AGO
    for _ in range(2):
        reply = await client.ask(RESPONSES, [*items, TRIGGER], stream=stream, store=False)
        response = frames(reply)[-1]["response"] if stream else reply.json
        items = [*response["output"], MORE]
        assert [each["type"] for each in response["output"]] == ["compaction"]
    assert sent(client).path == "/responses/compact"
    assert THEIRS in [each.get("encrypted_content") for each in sent(client).body["input"]]


async def test_c75_a_rule_compacts_before_the_answer() -> None:
    client = await open_openai(COMPACTION, said("It is."))
    long = [*LONG_AGO[:2], {"role": "assistant", "content": "word " * 2_000}, MORE]
    reply = await client.ask(RESPONSES, long, context_management=RULE)
    assert [each["type"] for each in reply.json["output"]] == ["compaction", "message"]
    assert (sent(client, 0).path, sent(client).path) == ("/responses/compact", "/responses")
    assert [each.get("encrypted_content") for each in sent(client).body["input"]].count(THEIRS) == 1
    costs = [record.cost_nano_usd for record in client.home.stores.books.records.values()]
    assert (len(costs), sum(costs)) == (2, client.home.spent_nano_usd)


@pytest.mark.parametrize("fields", [{"model": "both"}, {"service_tier": "flex"}])
async def test_c75_a_record_is_written_where_a_fallback_must_read_it(fields: Any) -> None:
    client = await open_openai(said("Goal: a bridge."))
    reply = await client.ask(COMPACT, LONG_AGO, **fields)
    assert reply.json["output"][-1]["encrypted_content"].startswith("tollgate2.")
    assert sent(client).path == "/responses"
    assert sent(client).body["input"][-1]["content"].startswith("Write the record")


async def test_c75_another_provider_is_refused_and_a_route_skips_it() -> None:
    client = await open_openai(COMPACTION, said("Yes."))
    item = (await client.ask(RESPONSES, [*LONG_AGO, TRIGGER])).json["output"][0]
    reply = await client.ask(RESPONSES, [item, MORE], model="acme/other")
    assert (reply.status, reply.error["code"]) == (400, "invalid_request")
    assert reply.error["message"] == (
        "acme/other cannot read the conversation, which near compacted; "
        "use a model of that provider, or start again."
    )
    assert client.home.far.requests == []
    reply = await client.ask(RESPONSES, [item, MORE], model="both")
    assert reply.status == 200
    assert client.home.far.requests == []


async def test_c75_the_item_is_for_its_workspace_alone() -> None:
    client = await open_openai(COMPACTION)
    item = (await client.ask(RESPONSES, [*LONG_AGO, TRIGGER])).json["output"][0]
    key = NewKey(workspace_id="other", label="agent")
    stranger, _ = await funded_key(client.home.stores, FUNDS_NANO_USD, key)
    for secret, content in ((stranger, item["encrypted_content"]), (client.secret, THEIRS)):
        other = replace(client, secret=secret)
        reply = await other.ask(RESPONSES, [{**item, "encrypted_content": content}, MORE])
        assert (reply.status, reply.error["param"]) == (400, "input[0].encrypted_content")
    assert len(client.home.near.requests) == 1


@pytest.mark.parametrize(
    "output", [[], [KEPT], [ITEM, ITEM], [{**ITEM, "encrypted_content": None}]]
)
async def test_c75_a_reply_without_exactly_one_item_fails_and_costs_nothing(output: Any) -> None:
    client = await open_openai(*[{**COMPACTION, "output": output}] * 3)
    reply = await client.ask(COMPACT, LONG_AGO)
    assert (reply.status, reply.error["code"]) == (502, "provider_unavailable")
    assert client.home.spent_nano_usd == client.home.held_nano_usd == 0
