"""Guardrails that keys and teams add to those of the file.

Keeps C53, C56.
"""

from typing import Any

import pytest

from tests.gateways import House
from tests.unit.engine.guardrails.homes import CARD, MODELS, ask, patterns
from tests.unit.web.test_api_app import Api, api

ROUTES = {"safe": {"description": "Guarded", "try": ("acme/large",)}}


async def gateway(**rows: Any) -> Api:
    return await api(models=MODELS, aliases={}, routes=ROUTES, guardrails=rows)


async def with_key(call: Api, **settings: Any) -> House:
    content = {"name": "k", **settings}
    reply = await call("POST", "/v1/keys", key=call.management, content=content)
    assert reply.status == 201, reply.json
    call.home.secret = reply.json["key"]
    return call.home


async def test_c56_a_key_adds_a_guardrail_that_applies_to_nobody_else() -> None:
    call = await gateway(cards=patterns(applies_to={}))
    assert (await ask(call.home, CARD, model="acme/large")).status == 200
    refused = await ask(await with_key(call, guardrails="cards"), CARD, model="acme/large")
    assert (refused.status, refused.json["error"]["code"]) == (400, "content_filter")
    assert "cards" in refused.json["error"]["message"]


async def test_c56_a_team_adds_a_guardrail_and_no_setting_removes_one() -> None:
    call = await gateway(cards=patterns(applies_to={}), mails=patterns("email"))
    team = {"id": "search", "guardrails": "cards"}
    made = await call("POST", "/v1/teams", key=call.management, content=team)
    assert made.json["data"]["guardrails"] == "cards"
    home = await with_key(call, team_id="search", guardrails="mails")
    for text in (CARD, "ada@example.com"):
        assert (await ask(home, text, model="acme/large")).status == 400


@pytest.mark.parametrize("rows", [{}, {"cards": patterns()}])
async def test_c56_a_guardrail_that_the_catalog_lacks_refuses(rows: dict[str, Any]) -> None:
    call = await gateway(**rows)
    home = await with_key(call, guardrails="harm")
    refused = await ask(home, "Hi", model="acme/large")
    assert refused.status == 502
    assert "The guardrail harm could not judge" in refused.json["error"]["message"]
    assert home.near.requests == []
    assert home.held_nano_usd == 0


async def test_c53_explain_shows_the_guardrails_of_a_key() -> None:
    call = await gateway(cards=patterns(applies_to={}))
    home = await with_key(call, guardrails="cards")
    content = {"model": "acme/large", "messages": [{"role": "user", "content": "Hi"}]}
    shown = await call("POST", "/v1/route/explain", key=home.secret, content=content)
    assert [each["name"] for each in shown.json["guardrails"]] == ["cards"]


@pytest.mark.parametrize("names", ["", "Cards", "a,,b", "a;b", "x" * 501])
async def test_c56_names_that_are_malformed_are_refused(names: str) -> None:
    call = await gateway()
    for path, field in (("/v1/keys", "name"), ("/v1/teams", "id")):
        content = {field: "search", "guardrails": names}
        reply = await call("POST", path, key=call.management, content=content)
        assert (reply.status, reply.error["param"]) == (400, "guardrails"), reply.body
