"""Bad input through the deployed path: each has its documented error and leaves no hold behind.

Keeps C1, C2, C19, C38, C40, C41, C43, C45.
"""

import gzip
import json
import zlib
from typing import Any

import pytest

from tests.deployment import BODY_BYTES_MAX, Deployment, Key, Workspace

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHAT = "/v1/chat/completions"
GOOD: dict[str, Any] = {"model": "alpha/one", "messages": [{"role": "user", "content": "Hi"}]}


def nested(levels: int) -> bytes:
    """A good body with an unknown field, so many levels deep in all."""
    arrays = levels - 1
    body = json.dumps(GOOD | {"model": "test/echo", "unknown": 0}).encode()
    return body.replace(b'"unknown": 0', b'"unknown": ' + b"[" * arrays + b"]" * arrays)


BAD_BODIES: dict[str, tuple[bytes, str | None]] = {
    "nothing": (b"", None),
    "not JSON": (b'{"model": "alpha/one", ', None),
    "not UTF-8": (b"\xff\xfe\x00", None),
    "not an object": (b"[1, 2]", None),
    "NaN": (json.dumps(GOOD | {"temperature": float("nan")}).encode(), None),
    "201 levels": (nested(201), None),
    "100,000 levels": (b'{"messages": ' + b"[" * 100_000, None),
    "no model": (json.dumps({"messages": GOOD["messages"]}).encode(), "model"),
    "messages of a wrong type": (json.dumps(GOOD | {"messages": "Hi"}).encode(), "messages"),
    "no messages": (json.dumps(GOOD | {"messages": []}).encode(), "messages"),
    "an unknown role": (
        json.dumps(GOOD | {"messages": [{"role": "robot", "content": "Hi"}]}).encode(),
        "messages[0].role",
    ),
    "a temperature of a wrong type": (
        json.dumps(GOOD | {"temperature": "hot"}).encode(),
        "temperature",
    ),
    "a stream of a wrong type": (json.dumps(GOOD | {"stream": "yes"}).encode(), "stream"),
    "a limit of zero": (json.dumps(GOOD | {"max_tokens": 0}).encode(), "max_tokens"),
}


@pytest.mark.parametrize(("body", "param"), BAD_BODIES.values(), ids=BAD_BODIES)
async def test_c40_a_bad_body_is_a_400_that_names_the_field(
    deployment: Deployment, workspace: Workspace, body: bytes, param: str | None
) -> None:
    answer = await deployment.ask("POST", CHAT, workspace.inference, body=body)
    assert answer.status == 400
    error = answer.json["error"]
    assert set(error) == {"message", "type", "code", "param", "request_id"}
    assert (error["code"], error["type"]) == ("invalid_request", "invalid_request_error")
    assert error["param"] == param
    assert error["request_id"] == answer.headers["x-request-id"]
    assert deployment.upstreams.alpha.received == []


async def test_200_levels_are_not_too_deep(deployment: Deployment, workspace: Workspace) -> None:
    answer = await deployment.ask("POST", CHAT, workspace.inference, body=nested(200))
    assert answer.status == 200
    assert answer.headers["x-tollgate-adapted"] == "unknown"


async def test_c19_an_unknown_model_is_a_404_with_the_nearest_names(
    deployment: Deployment, workspace: Workspace
) -> None:
    body = GOOD | {"model": "alpha/onee"}
    answer = await deployment.ask("POST", CHAT, workspace.inference, body=body)
    assert answer.status == 404
    error = answer.json["error"]
    assert (error["code"], error["type"]) == ("model_not_found", "not_found_error")
    assert error["param"] == "model"
    assert "alpha/one" in error["message"]


@pytest.mark.parametrize(("path", "key"), [(CHAT, "inference"), ("/v1/keys", "management")])
async def test_c41_c43_a_body_over_the_limit_is_a_413_that_says_what_to_do(
    deployment: Deployment, workspace: Workspace, path: str, key: str
) -> None:
    body = json.dumps(GOOD | {"user": "x" * BODY_BYTES_MAX}).encode()
    secret: Key = getattr(workspace, key)
    answer = await deployment.ask("POST", path, secret, body=body)
    assert answer.status == 413
    assert answer.json["error"]["code"] == "payload_too_large"
    assert "/v1/files" in answer.json["error"]["message"]
    assert answer.headers["x-request-id"] == answer.json["error"]["request_id"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_c41_a_wrong_method_is_a_405(
    deployment: Deployment, workspace: Workspace, method: str
) -> None:
    answer = await deployment.ask(method, CHAT, workspace.inference)
    assert answer.status == 405
    assert answer.json["error"]["code"] == "method_not_allowed"


@pytest.mark.parametrize("path", ["/v1/nope", "/v1/chat/nope", "/nope", "/v1/keys/a/b/c"])
async def test_c41_an_unknown_path_is_a_404(
    deployment: Deployment, workspace: Workspace, path: str
) -> None:
    answer = await deployment.ask("POST", path, workspace.inference, body=GOOD)
    assert answer.status == 404
    assert answer.json["error"]["code"] == "not_found"
    assert answer.headers["x-request-id"] == answer.json["error"]["request_id"]


@pytest.mark.parametrize(
    "secret", ["", "nonsense", "sk-tg-" + "A" * 43, "sk-tg-\u00e9", "x" * 5000]
)
async def test_c2_a_key_that_is_none_is_a_401(
    deployment: Deployment, workspace: Workspace, secret: str
) -> None:
    nobody = Key(id="", secret=secret)
    for method, path in (("POST", CHAT), ("GET", "/v1/key")):
        answer = await deployment.ask(method, path, nobody, body=GOOD)
        assert answer.status == 401
        assert answer.json["error"]["code"] == "invalid_api_key"
        assert answer.json["error"]["type"] == "authentication_error"


async def test_c2_no_key_at_all_is_a_401(deployment: Deployment, workspace: Workspace) -> None:
    answer = await deployment.ask("POST", CHAT, body=GOOD)
    assert answer.status == 401
    assert answer.json["error"]["code"] == "invalid_api_key"


async def test_c41_a_key_of_the_wrong_role_is_a_403(
    deployment: Deployment, workspace: Workspace
) -> None:
    for method, path, key in (
        ("POST", CHAT, workspace.management),
        ("GET", "/v1/keys", workspace.inference),
        ("GET", "/v1/credits", workspace.inference),
    ):
        answer = await deployment.ask(method, path, key, body=GOOD)
        assert answer.status == 403
        assert answer.json["error"]["code"] == "permission_denied"


async def test_c45_a_browsers_preflight_is_answered(
    deployment: Deployment, workspace: Workspace
) -> None:
    asked = {"origin": "https://app.example", "access-control-request-method": "POST"}
    url = deployment.emulator.url + CHAT
    async with deployment.http.options(url, headers=asked) as reply:
        assert reply.status == 200
        assert reply.headers["access-control-allow-origin"] == "*"
        assert "POST" in reply.headers["access-control-allow-methods"]


async def test_c1_a_trailing_slash_and_the_longer_path_behave(
    deployment: Deployment, workspace: Workspace
) -> None:
    for path in (CHAT, CHAT + "/"):
        body = GOOD | {"model": "test/echo"}
        answer = await deployment.ask("POST", path, workspace.inference, body=body)
        assert answer.status == 200
    answer = await deployment.ask("GET", "/api/v1/models/", workspace.inference)
    assert answer.status == 200


async def test_c1_c41_a_doubled_slash_before_a_metered_route_says_how_it_is_written(
    deployment: Deployment, workspace: Workspace
) -> None:
    """The REST API sends any other spelling to the buffered function."""
    path = CHAT.replace("/chat/", "//chat/")
    answer = await deployment.ask("POST", path, workspace.inference, body=GOOD)
    assert (answer.status, answer.json["error"]["code"]) == (404, "not_found")
    assert "without doubled or trailing slashes" in answer.json["error"]["message"]
    answer = await deployment.ask("GET", "/api/v1//models", workspace.inference)
    assert answer.status == 200


async def test_c1_head_is_get_without_a_body(deployment: Deployment, workspace: Workspace) -> None:
    for path, status in (("/v1/models", 200), ("/v1/nope", 404), (CHAT, 405)):
        answer = await deployment.ask("HEAD", path, workspace.inference)
        assert answer.status == status
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-request-id"]
        assert answer.body == b""


@pytest.mark.parametrize(("coding", "status"), [("gzip", 200), ("deflate", 200), ("zstd", 415)])
async def test_c38_api_gateway_decodes_a_body_and_leaves_its_header(
    deployment: Deployment, workspace: Workspace, coding: str, status: int
) -> None:
    body = json.dumps(GOOD | {"model": "test/echo"}).encode()
    packed = gzip.compress(body) if coding == "gzip" else zlib.compress(body)
    headers = {
        "authorization": f"Bearer {workspace.inference.secret}",
        "content-encoding": coding,
        "content-type": "application/json",
    }
    url = f"{deployment.emulator.url}{CHAT}"
    async with deployment.http.post(url, headers=headers, data=packed) as response:
        assert response.status == status, await response.text()
