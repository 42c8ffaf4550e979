"""An application that still runs when its invocation ends.

Keeps C34.
"""

import asyncio

from starlette.types import Receive, Scope, Send

from tests.unit.lambda_runtime.peer import PATIENCE_S, Peer
from tests.unit.lambda_runtime.serving import (
    POST,
    START,
    HandClock,
    body,
    others_run,
    response,
    serving,
    until,
    with_lifespan,
)


class Lingering:
    """An application that streams one chunk and then hangs; `on_cancel` says what it does then."""

    def __init__(self, *, start: bool, on_cancel: str) -> None:
        self._start = start
        self._on_cancel = on_cancel
        self.hanging = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.released = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._start:
            await send(START)
            await send(body(b"half", more=True))
        self.hanging.set()
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            if self._on_cancel == "end":
                await send(body(b"in-band error"))
                return
            if self._on_cancel == "ignore":
                await self.released.wait()
                await send(body(b"too late"))
            raise


async def test_c34_an_application_is_cancelled_2_s_before_the_deadline() -> None:
    app, clock = Lingering(start=True, on_cancel="raise"), HandClock()
    async with Peer(POST) as peer, serving(with_lifespan(app), peer, clock):
        await asyncio.wait_for(app.hanging.wait(), PATIENCE_S)
        clock.move_to(997.9)
        await others_run()
        assert not app.cancelled.is_set()
        clock.move_to(998.0)
        _, parts, trailers = response(await peer.ended())
    assert app.cancelled.is_set()
    assert parts == [b"half"]
    assert trailers["Lambda-Runtime-Function-Error-Type"] == "Function.DeadlineReached"


async def test_an_application_cut_off_before_it_started_answers_500() -> None:
    app, clock = Lingering(start=False, on_cancel="raise"), HandClock()
    async with Peer(POST) as peer, serving(with_lifespan(app), peer, clock):
        await asyncio.wait_for(app.hanging.wait(), PATIENCE_S)
        clock.move_to(998.0)
        assert response(await peer.ended())[0]["statusCode"] == 500


async def test_an_application_that_is_cut_off_may_still_end_its_response() -> None:
    app, clock = Lingering(start=True, on_cancel="end"), HandClock()
    async with Peer(POST) as peer, serving(with_lifespan(app), peer, clock):
        await asyncio.wait_for(app.hanging.wait(), PATIENCE_S)
        clock.move_to(998.0)
        assert response(await peer.ended())[1:] == ([b"half", b"in-band error"], {})


async def test_an_application_that_will_not_be_cancelled_does_not_keep_the_client_waiting() -> None:
    app, clock = Lingering(start=True, on_cancel="ignore"), HandClock()
    async with Peer(POST) as peer, serving(with_lifespan(app), peer, clock):
        await asyncio.wait_for(app.hanging.wait(), PATIENCE_S)
        clock.move_to(998.0)
        await asyncio.wait_for(app.cancelled.wait(), PATIENCE_S)
        clock.move_to(999.0)
        post = await peer.ended()
        await others_run()
        assert len(peer.requests) == 2
        app.released.set()
        await until(lambda: len(peer.requests) == 3)
        assert response(post)[1] == [b"half"]
    assert [request.split()[0] for request in peer.requests] == ["GET", "POST", "GET"]
