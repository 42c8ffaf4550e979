"""Prompt policies of keys and teams, as the API sets them and requests of every format meet them.

Keeps C58.
"""

import json

import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always
from tests.unit.engine.test_prompt_policies import MODELS, PROVIDERS
from tests.unit.web.test_api_app import Api, api
from tests.unit.web.test_request_ceilings import PATHS, body
from tollgate.core.json_value import JsonValue
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits


async def gateway() -> Api:
    return await api(providers=PROVIDERS, models=MODELS, aliases={}, routes={})


async def new_key(call: Api, **settings: JsonValue) -> str:
    reply = await call("POST", "/v1/keys", key=call.management, content={"name": "k", **settings})
    assert reply.status == 201, reply.json
    secret: str = reply.json["key"]
    return secret


async def ask(call: Api, secret: str, path: str = PATHS[0], **fields: JsonValue) -> Exchange:
    app = chat_app(call.home.front, Always(call.home.gateway), WebLimits())
    content = {**body(path, 100), "model": "acme/both", **fields}
    headers = {"authorization": f"Bearer {secret}"}
    return await request(app, "POST", path, headers=headers, body=json.dumps(content).encode())


@pytest.mark.parametrize("path", PATHS)
async def test_c58_a_key_is_refused_with_reasons_in_every_format(path: str) -> None:
    call = await gateway()
    secret = await new_key(call, prompt_policy="CH")
    refused = await ask(call, secret, path)
    assert refused.status == 403
    assert "far/f is not known to stay in CH" in refused.error["message"]
    assert call.home.stores.books.records == {}


async def test_c58_a_teams_policy_holds_for_its_keys() -> None:
    call = await gateway()
    team = {"id": "search", "prompt_policy": "eu,no_retention"}
    made = await call("POST", "/v1/teams", key=call.management, content=team)
    assert (made.status, made.json["data"]["prompt_policy"]) == (201, "eu,no_retention")
    served = await ask(call, await new_key(call, team_id="search"))
    assert (served.status, served.json["provider_used"]) == (200, "far")


async def test_c58_a_request_narrows_the_policy_of_its_key() -> None:
    call = await gateway()
    secret = await new_key(call, prompt_policy="US")
    assert (await ask(call, secret)).json["provider_used"] == "near"
    refused = await ask(call, secret, provider={"zdr": True})
    assert refused.status == 400
    assert "near/n is not known to discard prompts" in refused.error["message"]


@pytest.mark.parametrize("policy", ["europe", "", "eu;CH", "no_logs", "x" * 201])
async def test_c58_a_policy_with_an_unknown_word_is_refused(policy: str) -> None:
    call = await gateway()
    for path, name in (("/v1/keys", "name"), ("/v1/teams", "id")):
        content = {name: "search", "prompt_policy": policy}
        reply = await call("POST", path, key=call.management, content=content)
        assert (reply.status, reply.error["param"]) == (400, "prompt_policy")
