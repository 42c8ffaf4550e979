"""An application served from a scripted Runtime API, and how to read its answers."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.unit.lambda_runtime.peer import PATIENCE_S, Peer, Post, chunks, next_reply
from tollgate.lambda_runtime.loop import run_loop

# Synthetic, after the example in the API Gateway guide, "Input format of a Lambda function for
# proxy integration" (seen 2026-11-21).
EVENT: dict[str, Any] = {
    "resource": "/v1/{proxy+}",
    "path": "/v1/chat/completions",
    "httpMethod": "POST",
    "headers": {"Host": "abc.execute-api.eu-west-1.amazonaws.com", "X-Forwarded-Port": "443"},
    "multiValueHeaders": {
        "Host": ["abc.execute-api.eu-west-1.amazonaws.com"],
        "X-Forwarded-Port": ["443"],
        "X-Forwarded-Proto": ["https"],
        "Authorization": ["Bearer sk-tg-1"],
        "Accept": ["text/plain", "text/html"],
    },
    "queryStringParameters": {"a": "2", "q": "ä b&c"},
    "multiValueQueryStringParameters": {"a": ["1", "2"], "q": ["ä b&c"]},
    "pathParameters": {"proxy": "chat/completions"},
    "stageVariables": None,
    "requestContext": {
        "path": "/api/v1/chat/completions",
        "stage": "api",
        "identity": {"sourceIp": "203.0.113.7"},
    },
    "body": '{"model":"ä"}',
    "isBase64Encoded": False,
}
POST = next_reply(json.dumps(EVENT).encode())
START: Message = {"type": "http.response.start", "status": 200, "headers": [(b"x", b"y")]}


class HandClock:
    """A clock that a test moves; it shows second 900, and the deadline is at 1000."""

    def __init__(self) -> None:
        self._now_s = 900.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def now_s(self) -> float:
        return self._now_s

    monotonic_s = now_s

    async def sleep(self, delay_s: float) -> None:
        wake = asyncio.Event()
        self._sleepers.append((self._now_s + delay_s, wake))
        self.move_to(self._now_s)
        await wake.wait()

    def move_to(self, second: float) -> None:
        self._now_s = second
        for at_s, wake in self._sleepers:
            if at_s <= second:
                wake.set()


def body(octets: bytes, *, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": octets, "more_body": more}


def with_lifespan(handle: ASGIApp) -> ASGIApp:
    """An application that starts and stops without a word, and handles requests so."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await handle(scope, receive, send)
            return
        for phase in ("startup", "shutdown"):
            assert (await receive())["type"] == f"lifespan.{phase}"
            await send({"type": f"lifespan.{phase}.complete"})

    return app


@asynccontextmanager
async def serving(app: ASGIApp, peer: Peer, clock: HandClock | None = None) -> AsyncIterator[None]:
    task = asyncio.create_task(run_loop(app, peer.address, clock=clock or HandClock()))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=PATIENCE_S)
        if not task.cancelled() and (error := task.exception()):
            raise error


def response(post: Post) -> tuple[dict[str, Any], list[bytes], dict[str, str]]:
    """The prelude, the chunks of the body, and the trailers of a whole response."""
    assert post.path.endswith("/response")
    (opening, *rest), trailers = chunks(bytes(post.raw))
    assert opening.endswith(bytes(8))
    return json.loads(opening[:-8]), rest, trailers


async def answered(app: ASGIApp, event: bytes = POST) -> Post:
    """What an application's answer to one event looks like to Lambda."""
    async with Peer(event) as peer, serving(with_lifespan(app), peer):
        return await peer.ended()


async def others_run() -> None:
    """Give everything that could go on the chance to do so."""
    for _ in range(50):
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool]) -> None:
    """Let everything else run until something holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for is not ours to signal
            await asyncio.sleep(0)


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await send(START)
    await send(body(b"hello"))
