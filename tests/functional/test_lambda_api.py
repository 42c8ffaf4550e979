"""The api function under an unmodified awslambdaric, and what it means for the chat function.

Keeps C3, C40, C60, C61, C64, C66.
"""

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from openai import AsyncOpenAI, AuthenticationError

from tests.chat_stream import exact
from tests.deployment import Deployment, Key, Workspace
from tests.upstream.speakers import OPENAI

pytestmark = pytest.mark.asyncio(loop_scope="session")

ECHO: dict[str, Any] = {"model": "test/echo", "messages": [{"role": "user", "content": "Hi you"}]}
ECHO_COST = 2 * 1_000 + 2 * 2_000


async def created_key(deployment: Deployment, workspace: Workspace, **more: object) -> Key:
    body = {"name": "team", **more}
    answer = await deployment.ask("POST", "/v1/keys", workspace.management, body=body)
    assert answer.status == 201
    assert answer.headers["x-request-id"]
    return Key(id=answer.json["data"]["id"], secret=answer.json["key"])


async def disable(deployment: Deployment, workspace: Workspace, key: Key) -> None:
    path = f"/v1/keys/{key.id}"
    body = {"disabled": True}
    answer = await deployment.ask("PATCH", path, workspace.management, body=body)
    assert answer.status == 200
    assert answer.json["data"]["disabled"] is True


async def test_c60_a_new_key_works_at_once_and_is_shown_once(
    deployment: Deployment, workspace: Workspace
) -> None:
    key = await created_key(deployment, workspace, limits={"day": 1})
    async with deployment.client(key) as client:
        answer = await client.chat.completions.create(**ECHO)
    assert answer.choices[0].message.content == "Hi you"
    # Before the list: asking for itself is a use, which the list then shows.
    own = await deployment.ask("GET", "/v1/key", key)
    listed = await deployment.ask("GET", "/v1/keys", workspace.management)
    assert key.secret.encode() not in listed.body
    (shown,) = [each for each in exact(listed.body)["data"] if each["id"] == key.id]
    assert shown["label"].endswith(key.secret[-4:])
    assert shown["usage"] == Decimal(ECHO_COST).scaleb(-9)
    assert shown["limits_remaining"]["day"] == 1 - Decimal(ECHO_COST).scaleb(-9)
    itself = exact(own.body)["data"]
    assert itself.pop("levels") == []
    assert itself.pop("tightest")["remaining"] == shown["limits_remaining"]["day"]
    assert itself == shown


async def test_c60_a_disabled_key_is_refused_at_its_first_use(
    deployment: Deployment, workspace: Workspace
) -> None:
    key = await created_key(deployment, workspace)
    await disable(deployment, workspace, key)
    await assert_refused(deployment, key)


async def test_c60_a_disabled_key_that_is_still_cached_is_refused_by_its_state(
    deployment: Deployment, workspace: Workspace
) -> None:
    key = await created_key(deployment, workspace)
    async with deployment.client(key) as client:
        await client.chat.completions.create(**ECHO)
    await disable(deployment, workspace, key)
    await assert_refused(deployment, key)


async def assert_refused(deployment: Deployment, key: Key) -> None:
    async with deployment.client(key) as client:
        with pytest.raises(AuthenticationError) as raised:
            await client.chat.completions.create(**ECHO)
    assert raised.value.code == "invalid_api_key"


async def test_c61_a_key_is_kept_to_its_models(
    deployment: Deployment, workspace: Workspace
) -> None:
    key = await created_key(deployment, workspace, models=["test/*"])
    answer = await deployment.ask("GET", "/v1/models", key)
    assert all(model["id"].startswith(("test/", "test-")) for model in answer.json["data"])
    body = ECHO | {"model": "alpha/one"}
    answer = await deployment.ask("POST", "/v1/chat/completions", key, body=body)
    assert (answer.status, answer.json["error"]["code"]) == (403, "model_not_allowed")


async def test_c61_a_limit_that_is_spent_is_a_402_and_nothing_is_held(
    deployment: Deployment, workspace: Workspace
) -> None:
    key = await created_key(deployment, workspace, limits={"total": 0.000001})
    first = await deployment.ask("POST", "/v1/chat/completions", key, body=ECHO)
    assert first.status == 200
    second = await deployment.ask("POST", "/v1/chat/completions", key, body=ECHO)
    assert (second.status, second.json["error"]["code"]) == (402, "key_limit_exceeded")
    await deployment.assert_books_closed(workspace, ECHO_COST)


async def test_c64_a_grant_is_added_once_and_the_books_add_up(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    await client.chat.completions.create(**ECHO)
    grant = {"id": "invoice-1", "workspace_id": workspace.id, "amount": 2.5, "note": "paid"}
    operator = await deployment.operator()
    for granted in (True, False):
        answer = await deployment.ask("POST", "/v1/credits/grants", operator, body=grant)
        assert answer.json["granted"] is granted
    shown = await deployment.ask("GET", "/v1/credits", workspace.management)
    money = exact(shown.body)["data"]
    assert money["total_credits"] == Decimal("12.5")
    assert money["total_usage"] == Decimal(ECHO_COST).scaleb(-9)
    assert money["held"] == 0
    assert money["available"] + money["held"] + money["total_usage"] == money["total_credits"]


async def test_c64_what_is_held_shows_while_it_is_held(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    upstream = deployment.upstreams.alpha
    chunks = OPENAI.text(["Hello"])
    upstream.enqueue(OPENAI.script(chunks, lock_step=True))
    for _ in OPENAI.begun(["Hello"]):
        await upstream.release()
    stream = await client.chat.completions.create(**ECHO | {"model": "alpha/one"}, stream=True)
    shown = await deployment.ask("GET", "/v1/credits", workspace.management)
    money = exact(shown.body)["data"]
    assert money["held"] > 0
    assert money["available"] + money["held"] + money["total_usage"] == money["total_credits"]
    for _ in chunks:
        await upstream.release()
    async for _ in stream:
        pass
    await deployment.assert_books_closed(workspace, 9 * 1_000 + 3 * 2_000)


async def test_c66_a_generation_is_shown_by_either_id_and_to_its_workspace_alone(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    answer = await client.chat.completions.create(**ECHO, extra_headers={"x-request-id": "mine"})
    bare = answer.id.removeprefix("gen-")
    for id_ in (bare, answer.id):
        shown = await deployment.ask("GET", f"/v1/generation?id={id_}", workspace.inference)
        data = exact(shown.body)["data"]
        assert (data["id"], data["request_id"]) == (answer.id, bare)
        assert data["client_request_id"] == "mine"
        assert data["total_cost"] == Decimal(ECHO_COST).scaleb(-9)
        assert sum(line["cost"] for line in data["cost_lines"]) == data["total_cost"]
        assert [attempt["provider_name"] for attempt in data["provider_responses"]] == ["simulator"]
    stranger = await deployment.workspace()
    for key in (stranger.inference, stranger.management):
        refused = await deployment.ask("GET", f"/v1/generation?id={bare}", key)
        assert (refused.status, refused.json["error"]["code"]) == (404, "not_found")


async def test_c66_a_record_has_the_ids_by_which_the_platforms_logs_are_searched(
    deployment: Deployment, workspace: Workspace
) -> None:
    answer = await deployment.ask("POST", "/v1/chat/completions", workspace.inference, body=ECHO)
    path = f"/v1/generation?id={answer.headers['x-generation-id']}"
    data = (await deployment.ask("GET", path, workspace.inference)).json["data"]
    assert data["api_gateway_request_id"] == answer.headers["x-amzn-requestid"]
    assert str(UUID(data["lambda_request_id"])) == data["lambda_request_id"]
    assert data["lambda_request_id"] != data["api_gateway_request_id"]


async def test_c3_models_and_health_need_no_key(
    deployment: Deployment, workspace: Workspace
) -> None:
    models = await deployment.ask("GET", "/v1/models")
    assert models.status == 200
    assert "alpha/one" in {model["id"] for model in models.json["data"]}
    for path in ("/v1/health/live", "/v1/health/ready"):
        health = await deployment.ask("GET", path)
        assert (health.status, health.json["status"]) == (200, "ok")
    schema = await deployment.ask("GET", "/v1/openapi.json")
    assert schema.status == 200


async def test_the_official_sdk_lists_the_models(client: AsyncOpenAI) -> None:
    slugs = [model.id async for model in client.models.list()]
    assert "bedrock/one" in slugs


BAD_BODIES: dict[str, tuple[str, object]] = {
    "not JSON": ("/v1/keys", b"{"),
    "not UTF-8": ("/v1/keys", b"\xff"),
    "an unknown field": ("/v1/keys", {"name": "x", "colour": "red"}),
    "a wrong type": ("/v1/keys", {"name": 1}),
    "a negative grant": ("/v1/credits/grants", {"id": "x", "amount": -1}),
    "an infinite grant": ("/v1/credits/grants", b'{"id": "x", "amount": 1e999}'),
    "a grant of too many digits": ("/v1/credits/grants", {"id": "x", "amount": "1.0000000001"}),
    "deep nesting": ("/v1/keys", b'{"name": ' + b"[" * 100_000),
}


@pytest.mark.parametrize(("path", "body"), BAD_BODIES.values(), ids=BAD_BODIES)
async def test_c40_a_bad_body_is_a_400_in_the_envelope(
    deployment: Deployment, path: str, body: object
) -> None:
    answer = await deployment.ask("POST", path, await deployment.operator(), body=body)
    assert answer.status == 400
    error = answer.json["error"]
    assert set(error) == {"message", "type", "code", "param", "request_id"}
    assert error["code"] == "invalid_request"
    assert error["request_id"] == answer.headers["x-request-id"]
