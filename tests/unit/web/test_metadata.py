"""Who asks is told how the request was routed, however the reply is told and however it ends.

Keeps C28.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always, house, request_body
from tests.scripted import Scripted, Silence, answers, refuses, says
from tollgate.engine.gateway import StreamTiming
from tollgate.ingress.chat_completions.wire.response import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatCompletionFailure,
)
from tollgate.ingress.shared.wire.reply_models import ErrorEnvelope
from tollgate.providers.ports.base import Frame
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

ROUTES = {
    "smart": {
        "description": "By size",
        "rules": (
            {"if": {"prompt_tokens_over": 90_000}, "try": ("other/tools",)},
            {"try": ("acme/large",)},
        ),
    }
}
BROKEN = [*says("Hel"), Frame(data=b"not JSON")]
FAILED = {
    "provider": "near",
    "model": "acme/large",
    "status": 401,
    "error": "provider_auth",
    "ms": 2000,
}


@dataclass
class Asked:
    """A request to the route, and what came of it."""

    reply: Exchange
    sha: str
    chunks: list[dict[str, Any]] = field(default_factory=list)

    def expected(self, *attempts: dict[str, Any], rule: int | None = 2) -> dict[str, Any]:
        return {
            "requested": "smart",
            "route": "smart",
            "rule": rule,
            "attempts": list(attempts),
            "reused_generation": None,
            "catalog_sha": self.sha,
        }


def serves(provider: str, ms: int = 0) -> dict[str, Any]:
    return {"provider": provider, "model": "acme/large", "status": 200, "error": None, "ms": ms}


async def ask(
    *,
    near: Scripted | None = None,
    far: Scripted | None = None,
    stream: bool = False,
    header: str | None = "enabled",
    key: NewKey | None = None,
    timing: StreamTiming | None = None,
    **fields: Any,
) -> Asked:
    home = await house(near=near, far=far, routes=ROUTES, key=key, timing=timing)
    headers = {"authorization": f"Bearer {home.secret}"}
    if header is not None:
        headers["x-tollgate-metadata"] = header
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    body = request_body(fields.pop("model", "smart"), stream=stream, **fields)
    reply = await request(app, "POST", "/v1/chat/completions", headers=headers, body=body)
    chunks = [
        json.loads(line[6:]) for line in reply.body.split(b"\n") if line.startswith(b"data: {")
    ]
    for chunk in chunks:
        frame = ChatCompletionChunk if "choices" in chunk else ChatCompletionFailure
        frame.model_validate(chunk)
    if not chunks:
        published = ChatCompletion if reply.status == 200 else ErrorEnvelope
        published.model_validate(reply.json)
    return Asked(reply, home.catalog.sha, chunks)


def late_refusal() -> Scripted:
    return Scripted([Silence(2), *refuses(401)])


async def test_c28_a_whole_reply_has_the_rule_and_every_attempt() -> None:
    asked = await ask(near=late_refusal())
    assert asked.reply.json["tollgate_metadata"] == asked.expected(FAILED, serves("far"))


async def test_c28_a_stream_has_it_in_the_usage_frame_and_nowhere_else() -> None:
    asked = await ask(near=late_refusal(), stream=True)
    *others, last = asked.chunks
    assert last["tollgate_metadata"] == asked.expected(FAILED, serves("far"))
    assert not [chunk for chunk in others if "tollgate_metadata" in chunk]


@pytest.mark.parametrize("stream", [False, True])
async def test_c28_an_error_with_a_status_has_it_beside_the_error(stream: bool) -> None:
    asked = await ask(near=late_refusal(), far=Scripted(refuses(403)), stream=stream)
    refused = {**FAILED, "provider": "far", "status": 403, "ms": 0}
    assert asked.reply.status == 502
    assert asked.reply.json["tollgate_metadata"] == asked.expected(FAILED, refused)


@pytest.mark.parametrize("timing", [StreamTiming(), StreamTiming(early_commit_after_s=1)])
async def test_c28_an_error_in_a_stream_has_it_in_the_error_chunk(timing: StreamTiming) -> None:
    committed_early = timing.early_commit_after_s == 1
    far = Scripted(refuses(403) if committed_early else BROKEN)
    asked = await ask(near=late_refusal(), far=far, stream=True, timing=timing)
    assert asked.reply.status == 200
    last = asked.chunks[-1]
    assert "error" in last
    assert [each["provider"] for each in last["tollgate_metadata"]["attempts"]] == ["near", "far"]
    assert last["tollgate_metadata"]["attempts"][1]["error"] is not None


async def test_c28_a_refusal_before_any_attempt_has_it_too() -> None:
    asked = await ask(key=NewKey(workspace_id="acme", label="few", models=("other/*",)))
    assert asked.reply.status == 403
    assert asked.reply.json["tollgate_metadata"] == asked.expected()


async def test_c28_a_name_that_is_not_there_was_not_routed() -> None:
    asked = await ask(model="smrt")
    assert asked.reply.status == 404
    expected = {**asked.expected(rule=None), "requested": "smrt", "route": None}
    assert asked.reply.json["tollgate_metadata"] == expected


@pytest.mark.parametrize("header", [None, "disabled"])
@pytest.mark.parametrize("near", [Scripted(answers("Hello")), Scripted(refuses(400))])
async def test_c28_who_does_not_ask_is_not_told(header: str | None, near: Scripted) -> None:
    asked = await ask(near=near, header=header)
    assert "tollgate_metadata" not in asked.reply.json
