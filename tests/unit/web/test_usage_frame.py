"""The frame of a stream that has the usage is a setting of the request, key and workspace.

Keeps C30.
"""

import json
from typing import Any

import pytest

from tests.asgi import request
from tests.gateways import Always
from tests.unit.web.test_api_app import Api, api
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

ASKED = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hi"}]},
    "/v1/completions": {"prompt": "Hi"},
}


async def usage_is_apart(call: Api, secret: str, path: str, usage_on: str | None) -> bool:
    """Return whether a stream has a frame with usage and without choices."""
    body: dict[str, Any] = {"model": "acme/small", "stream": True, **ASKED[path]}
    if usage_on:
        body["usage_on"] = usage_on
    app = chat_app(call.home.front, Always(call.home.gateway), WebLimits())
    headers = {"authorization": f"Bearer {secret}"}
    reply = await request(app, "POST", path, headers=headers, body=json.dumps(body).encode())
    assert reply.status == 200, reply.body
    frames = [json.loads(each[6:]) for each in reply.body.split(b"\n\n")[:-2]]
    assert [frame for frame in frames if "usage" in frame] == frames[-1:]
    return frames[-1]["choices"] == []


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize(
    ("of_workspace", "of_key", "of_request", "apart"),
    [
        (None, None, None, True),
        ("finish", None, None, False),
        (None, "finish", None, False),
        ("finish", "frame", None, True),
        ("frame", "finish", None, False),
        ("finish", "finish", "frame", True),
        ("frame", "frame", "finish", False),
    ],
)
async def test_c30_usage_is_in_the_frame_that_request_key_or_workspace_name(
    path: str, of_workspace: str | None, of_key: str | None, of_request: str | None, apart: bool
) -> None:
    call = await api()
    made = await call(
        "POST",
        "/v1/workspaces",
        key=call.management,
        content={"id": "acme", "usage_on": of_workspace},
    )
    assert made.json["data"]["usage_on"] == of_workspace
    made = await call(
        "POST", "/v1/keys", key=call.management, content={"name": "k", "usage_on": of_key}
    )
    assert made.json["data"]["usage_on"] == of_key
    assert await usage_is_apart(call, made.json["key"], path, of_request) is apart


async def test_c30_another_frame_is_refused_by_the_routes() -> None:
    call = await api()
    for path, body in (("/v1/keys", {"name": "n"}), ("/v1/workspaces", {"id": "new"})):
        content = {**body, "usage_on": "start"}
        reply = await call("POST", path, key=call.management, content=content)
        assert (reply.status, reply.error["param"]) == (400, "usage_on")
