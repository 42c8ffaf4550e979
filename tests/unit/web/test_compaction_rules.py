"""A route names the model that writes the records of its compactions.

Keeps C75.
"""

from typing import Any

import pytest

from tests.compacting import COMPACT, RECORD, RESPONSES, Client
from tests.gateways import house
from tests.scripted import Scripted, answers, frame
from tests.stores import TESTER
from tests.unit.routing.catalogs import endpoint, model, provider
from tollgate.providers.ports.formats import codec_of
from tollgate.stores.ports.administration import NewKey

LONG = [
    {"role": "user", "content": "Draw a bridge."},
    {"role": "assistant", "content": "word " * 2_000},
    {"role": "user", "content": "Is it blue?"},
]
RULE = [{"type": "compaction", "compact_threshold": 1_000}]
TRIGGER = {"type": "compaction_trigger"}
ROUTES = {
    "agent": {
        "description": "Agents",
        "rules": (
            {"if": {"compaction": True}, "try": ("acme/cheap", "acme/large")},
            {"try": ("acme/large",)},
        ),
    }
}


async def open_agent(*, models: tuple[str, ...] = ("*",), **sections: Any) -> Client:
    """A client of the route, whose cheap model is at `far` and whose other model at `near`."""
    home = await house(
        far=sections.pop("far", None) or Scripted(answers(RECORD)),
        near=Scripted(*([answers("It is.")] * 2)),
        models={
            "acme/cheap": model(endpoint("far", "m-2"), supports=("tools",)),
            "acme/large": model(
                sections.pop("offer", endpoint("near", "m-1")), supports=("tools",)
            ),
        },
        routes=ROUTES,
        aliases={},
        **sections,
    )
    key = NewKey(workspace_id="acme", label="agent", models=models)
    return Client(home, (await home.stores.keys.create(key, by=TESTER)).secret, model="agent")


@pytest.mark.parametrize("way", ["compact", "trigger", "window"])
async def test_c75_a_rule_names_the_model_that_writes_the_record(way: str) -> None:
    client = await open_agent(models=("agent",))
    match way:
        case "compact":
            reply = await client.ask(COMPACT, LONG)
        case "trigger":
            reply = await client.ask(RESPONSES, [*LONG, TRIGGER])
        case _:
            reply = await client.ask(RESPONSES, LONG, context_management=RULE)
    assert reply.status == 200, reply.body
    [record, *_] = client.home.stores.books.records.values()
    assert record.trace.is_compaction
    assert (record.trace.rule, record.model) == (1, "acme/cheap")
    assert "Write the record" in str(client.home.far.requests[0].body)
    more = {"role": "user", "content": "And longer."}
    await client.ask(RESPONSES, [*reply.json["output"], more])
    sent: Any = client.home.near.requests[-1].body
    assert any(str(each["content"]).endswith(RECORD) for each in sent["messages"])
    assert len(client.home.far.requests) == 1


async def test_c75_under_such_a_rule_no_provider_compacts_by_itself() -> None:
    text = [{"type": "output_text", "text": RECORD, "annotations": []}]
    said = {
        "id": "resp_2",
        "object": "response",
        "status": "completed",
        "output": [{"type": "message", "role": "assistant", "content": text}],
        "usage": {"input_tokens": 9, "output_tokens": 3},
    }
    own = endpoint("far", "m-2") | {
        "dialect": {"compacts": True, "developer_role": True, "refuses": ()}
    }
    client = await open_agent(
        far=Scripted([frame(said)]),
        offer=own,
        codec=codec_of("openai_responses"),
        providers={
            "near": provider(codec="openai_responses"),
            "far": provider(codec="openai_responses"),
        },
    )
    reply = await client.ask(COMPACT, LONG)
    assert reply.status == 200, reply.body
    assert reply.json["output"][-1]["encrypted_content"].startswith("tollgate2.")
    assert not client.home.far.requests[0].path.endswith("/compact")
