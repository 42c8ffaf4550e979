"""Many invocations in one environment, as Lambda Managed Instances hand them out.

Keeps C34, C35, C36, C40.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.unit.lambda_runtime.peer import PATIENCE_S, Peer, Post, next_reply
from tests.unit.lambda_runtime.serving import (
    EVENT,
    START,
    HandClock,
    body,
    others_run,
    response,
    until,
    with_lifespan,
)
from tollgate.lambda_runtime.loop import run_loop
from tollgate.lambda_runtime.runtime_api import RuntimeApiError

each_number = pytest.mark.parametrize(
    "in_flight", [1, 16, pytest.param(200, marks=pytest.mark.nightly)]
)


def events(count: int) -> list[bytes]:
    """Events whose request ids are their numbers, which their bodies repeat."""
    return [
        next_reply(json.dumps({**EVENT, "body": str(number)}).encode(), request_id=str(number))
        for number in range(count)
    ]


@asynccontextmanager
async def many(
    app: ASGIApp, peer: Peer, in_flight: int, clock: HandClock | None = None
) -> AsyncIterator[asyncio.Task[None]]:
    """An application that may be given so many invocations at once; yields its loop."""
    task = asyncio.create_task(
        run_loop(
            with_lifespan(app),
            peer.address,
            clock=clock or HandClock(),
            invocations_max=in_flight,
        )
    )
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, RuntimeApiError):
            await asyncio.wait_for(task, PATIENCE_S)


async def collect(take: Callable[[], Awaitable[Post]], count: int) -> dict[int, Post]:
    """So many posts of the peer, by the number in their path."""
    posts = [await take() for _ in range(count)]
    return {int(post.path.split("/")[-2]): post for post in posts}


class Steps:
    """An application in which each request waits until the test lets it go on."""

    def __init__(self, count: int) -> None:
        self.running = 0
        self.all_run = asyncio.Event()
        self.go_on = [asyncio.Event() for _ in range(count)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        number = int((await receive())["body"])
        self.running += 1
        if self.running == len(self.go_on):
            self.all_run.set()
        await self.start(number, send)
        await send(body(b"first %d" % number, more=True))
        await self.go_on[number].wait()
        await self.finish(number, send)

    async def start(self, number: int, send: Send) -> None:
        await send(START)

    async def finish(self, number: int, send: Send) -> None:
        await send(body(b"last %d" % number))


@each_number
async def test_c35_all_are_answered_at_once_each_with_its_own_bytes(in_flight: int) -> None:
    app = Steps(in_flight)
    async with Peer(*events(in_flight)) as peer, many(app, peer, in_flight):
        await asyncio.wait_for(app.all_run.wait(), PATIENCE_S)
        begun = await collect(peer.begun, in_flight)
        for number, post in begun.items():
            await post.until(lambda raw, n=number: raw.endswith(b"first %d\r\n" % n))
        # The last one first: none waits for another.
        for number in reversed(range(in_flight)):
            app.go_on[number].set()
            assert (await peer.ended()) is begun[number]
            assert response(begun[number])[1] == [b"first %d" % number, b"last %d" % number]


async def test_no_more_are_taken_than_the_environment_may_run() -> None:
    app = Steps(3)
    async with Peer(*events(4)) as peer, many(app, peer, 3):
        await asyncio.wait_for(app.all_run.wait(), PATIENCE_S)
        gets = [it for it in peer.requests if it.startswith("GET")]
        assert len(gets) == 3


class Failing(Steps):
    """A `Steps` whose request 0 ends in a way of its own."""

    def __init__(self, count: int, way: str) -> None:
        super().__init__(count)
        self._way = way

    async def finish(self, number: int, send: Send) -> None:
        if number == 0 and self._way == "raises":
            raise ValueError("detail")
        if number == 0 and self._way == "hangs":
            await asyncio.Event().wait()
        await super().finish(number, send)


@each_number
@pytest.mark.parametrize(
    ("way", "error_type"),
    [("raises", "Function.ValueError"), ("hangs", "Function.DeadlineReached")],
)
async def test_one_that_fails_or_hangs_ends_alone_and_its_log_lines_name_it(
    in_flight: int, way: str, error_type: str, caplog: pytest.LogCaptureFixture
) -> None:
    app, clock = Failing(in_flight, way), HandClock()
    async with Peer(*events(in_flight)) as peer, many(app, peer, in_flight, clock):
        await asyncio.wait_for(app.all_run.wait(), PATIENCE_S)
        for event in app.go_on[1:]:
            event.set()
        others = await collect(peer.ended, in_flight - 1)
        assert sorted(others) == list(range(1, in_flight))
        for number, post in others.items():
            assert response(post)[1:] == ([b"first %d" % number, b"last %d" % number], {})
        app.go_on[0].set()
        clock.move_to(998.0 if way == "hangs" else 900.0)
        _, parts, trailers = response(await peer.ended())
    assert parts == [b"first 0"]
    assert trailers["Lambda-Runtime-Function-Error-Type"] == error_type
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert {record.__dict__["fields"]["request_id"] for record in errors} == {"0"}


async def test_c40_one_with_too_many_headers_is_500_while_the_others_stream() -> None:
    class Loud(Steps):
        async def start(self, number: int, send: Send) -> None:
            headers = [(b"x", b"y" * 20_000)] if number == 0 else []
            await send({**START, "headers": headers})

    app = Loud(3)
    async with Peer(*events(3)) as peer, many(app, peer, 3):
        await asyncio.wait_for(app.all_run.wait(), PATIENCE_S)
        assert response(await peer.ended())[0]["statusCode"] == 500
        for event in app.go_on[1:]:
            event.set()
        assert sorted(await collect(peer.ended, 2)) == [1, 2]


@pytest.mark.parametrize("in_flight", [16, pytest.param(200, marks=pytest.mark.nightly)])
async def test_answers_under_way_are_finished_when_lambda_hands_out_no_more(
    in_flight: int,
) -> None:
    app = Steps(in_flight)
    # Each poller meets a closed connection twice before it ends: at its own and at a new one.
    script = [*events(in_flight), *[None] * (2 * in_flight)]
    async with Peer(*script) as peer, many(app, peer, in_flight) as loop:
        await asyncio.wait_for(app.all_run.wait(), PATIENCE_S)
        app.go_on[0].set()
        await peer.ended()
        await until(lambda: sum(it.startswith("GET") for it in peer.requests) == in_flight + 2)
        await others_run()
        assert not loop.done(), "the end of one poller ended the others"
        for event in app.go_on[1:]:
            event.set()
        answered = await collect(peer.ended, in_flight - 1)
        assert all(response(post)[2] == {} for post in answered.values())
        with pytest.raises(RuntimeApiError):
            await asyncio.wait_for(asyncio.shield(loop), PATIENCE_S)
