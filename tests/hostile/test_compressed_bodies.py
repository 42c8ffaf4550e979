"""Compressed bodies are decoded in steps, after admission, and within the limits of their content.

Keeps C8, C9, C38.
"""

import asyncio
import gzip
import json
import random
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from starlette.responses import Response
from starlette.types import ASGIApp

from tests.asgi import Exchange, exchange, request
from tests.gateways import Always, House, house, request_body
from tests.hostile.test_admission import COUNTING, SLOW, refuse
from tests.scripted import Scripted, answers
from tests.unit.web.test_api_app import api
from tollgate.core.dotted_names import DottedName
from tollgate.engine.side_thread import LARGE_BYTES
from tollgate.web.chat_app import chat_app
from tollgate.web.http import body_decoding
from tollgate.web.http.cors import WebLimits
from tollgate.web.local_app import LocalApp

zstd: Any = pytest.importorskip("backports.zstd")
CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstd.compress,
}
CHAT = "/v1/chat/completions"
LIMIT = 2_000_000


def app_of(home: House) -> ASGIApp:
    return chat_app(home.front, Always(home.gateway), WebLimits(body_bytes_max=LIMIT))


def pieces(body: bytes, size: int = 16 * 1024) -> list[bytes]:
    return [body[start : start + size] for start in range(0, len(body), size)] or [b""]


async def send(home: House, body: Any, coding: str, path: str = CHAT) -> Exchange:
    headers = {"authorization": f"Bearer {home.secret}", "content-encoding": coding}
    exchanged = exchange("POST", path, headers=headers, body=body)
    await exchanged.run(app_of(home))
    return exchanged


@cache
def words(size: int) -> str:
    """Return text that compresses as well as prose."""
    draw = random.Random(7)
    return " ".join(str(draw.randrange(1000)) for _ in range(size // 4))


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("size", [20, 200_000])
async def test_c38_a_compressed_body_is_read_like_a_plain_one(coding: str, size: int) -> None:
    near = Scripted(answers("Hello"))
    home, content = await house(near=near), words(size)
    body = request_body(messages=[{"role": "user", "content": content}])
    reply = await send(home, pieces(CODINGS[coding](body)), coding)
    assert reply.status == 200, reply.body
    assert near.requests[0].body["messages"][0]["content"] == content


async def test_c38_a_body_that_api_gateway_has_decoded_is_taken_as_it_is() -> None:
    assert (await send(await house(), request_body(), "gzip")).status == 200


@pytest.mark.parametrize("coding", ["br", "gzip, gzip", "compress", "x" * 500])
async def test_c38_c41_another_coding_is_a_415_that_lists_the_known_ones(coding: str) -> None:
    reply = await send(await house(), b"anything", coding)
    assert (reply.status, reply.error["code"]) == (415, "unsupported_encoding")
    assert "gzip, deflate or zstd" in reply.error["message"]
    assert len(reply.error["message"]) < 200


async def test_c38_a_host_without_zstd_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_decoding, "_OPEN_ZSTD", DottedName("absent_module:ZstdStream"))
    reply = await send(await house(), zstd.compress(request_body()), "zstd")
    assert (reply.status, reply.error["code"]) == (415, "unsupported_encoding")


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("fault", ["cut", "corrupt", "followed", "repeated"])
async def test_c38_a_broken_body_is_a_400(coding: str, fault: str) -> None:
    compressed = CODINGS[coding](request_body())
    faulty = {
        "cut": compressed[:-5],
        "corrupt": bytes([compressed[0] ^ 0xFF]) + compressed[1:],
        "followed": compressed + b"more",
        "repeated": compressed + compressed,
    }[fault]
    reply = await send(await house(), pieces(faulty, 10), coding)
    assert (reply.status, reply.error["code"]) == (400, "invalid_request")
    assert "cannot be decoded" in reply.error["message"]


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("write", [lambda: "a" * 50_000_000, lambda: words(3_000_000)])
async def test_c8_c38_content_over_the_limit_is_a_413_of_a_known_caller(
    coding: str, write: Callable[[], str]
) -> None:
    home = await house()
    reply = await send(home, pieces(CODINGS[coding](write().encode())), coding)
    assert (reply.status, reply.error["code"]) == (413, "payload_too_large")


@pytest.mark.parametrize("path", [CHAT, *COUNTING])
@pytest.mark.parametrize("coding", CODINGS)
async def test_c9_c38_a_refused_key_has_64_kb_decoded(
    coding: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = await house(key=SLOW)
    await refuse(home, "no credit")
    steps: list[int] = []
    decode = body_decoding.BodyDecoder.decode

    def counted(self: Any, piece: bytes) -> Any:
        for content in decode(self, piece):
            steps.append(len(content))
            yield content

    monkeypatch.setattr(body_decoding.BodyDecoder, "decode", counted)
    reply = await send(home, pieces(CODINGS[coding](b"a" * 900_000)), coding, path)
    assert reply.error["code"] == "insufficient_credits"
    assert sum(steps) <= 2 * LARGE_BYTES


async def test_c9_c38_other_work_runs_between_two_steps() -> None:
    home = await house()
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    turning = asyncio.create_task(turn())
    await send(home, gzip.compress(words(1_900_000).encode()), "gzip")
    turning.cancel()
    assert turns >= 1_900_000 // body_decoding.STEP_BYTES


async def test_c38_routes_of_the_api_decode_too() -> None:
    call = await api()
    headers = {"authorization": f"Bearer {call.management}", "content-encoding": "gzip"}
    body = gzip.compress(json.dumps({"name": "packed"}).encode())
    reply = await request(call.app, "POST", "/v1/keys", headers=headers, body=body)
    assert (reply.status, reply.json["data"]["name"]) == (201, "packed")


@pytest.mark.parametrize(
    ("accepted", "size", "media_type", "coding"),
    [
        ("gzip, br", 9_000, "application/json", "gzip"),
        ("gzip", 1_000, "application/json", None),
        ("identity", 9_000, "application/json", None),
        ("gzip", 9_000, "application/octet-stream", None),
        ("gzip", 9_000, "text/event-stream", None),
    ],
)
async def test_c38_a_long_answer_of_a_server_is_compressed_if_asked(
    accepted: str, size: int, media_type: str, coding: str | None
) -> None:
    app = LocalApp(chat=Response(b"chat"), api=Response(b"x" * size, media_type=media_type))
    reply = await request(app, "GET", "/v1/keys", headers={"accept-encoding": accepted})
    assert reply.headers.get("content-encoding") == coding
    assert (gzip.decompress(reply.body) if coding else reply.body) == b"x" * size
