"""A request that is made ready while its hold is written, and sent to nobody before."""

import asyncio
import gc
from typing import Any

import pytest
from msgspec.structs import replace
from typing_extensions import override

from tests.gateways import House, ShelvedMedia, house, request_body
from tests.scripted import Answer, Scripted, Silence, answers, refuses
from tests.scripted_tools import heard, tooled
from tests.unit.ingress.media_samples import PNG
from tests.unit.routing.catalogs import endpoint, model
from tollgate.core.errors import AccessError, ErrorCode, UpstreamError
from tollgate.engine.generate import generate
from tollgate.providers.ports.base import FetchedMedia, ReadyRequest, Timeouts, WireRequest
from tollgate.stores.ports.administration import NewKey

HOLD_S = 5.0
URL = "https://example.com/a.png"
PICTURE = {"type": "image_url", "image_url": {"url": URL}}
SEEING = {"acme/large": model(endpoint("near", "L"), input=("text", "image"))}
HELLO = answers("Hello", " world")


def broken() -> UpstreamError:
    return UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "It cannot be reached.")


class Watched(Scripted):
    """Notes each request that is made ready, and what was released unsent or given up before.

    It may be unreachable.
    """

    def __init__(self, *said: Answer) -> None:
        super().__init__(*said)
        self.ready: list[WireRequest] = []
        self.released: list[WireRequest] = []
        self.given_up: list[WireRequest] = []
        self.unreachable: Exception | None = None
        self.connect_s = 0.0

    @override
    async def make_ready(self, request: WireRequest, timeouts: Timeouts) -> ReadyRequest:
        self.ready.append(request)
        try:
            await asyncio.sleep(self.connect_s)
        except asyncio.CancelledError:
            self.given_up.append(request)
            raise
        if self.unreachable is not None:
            raise self.unreachable
        return ReadyRequest(
            lambda: self.open(request, timeouts), lambda: self.released.append(request)
        )


async def slow_house(near: Scripted, **more: object) -> House:
    home = await house(near=near, **more)
    home.ledger.hold_takes_s = HOLD_S
    return home


@pytest.mark.parametrize("stream", [True, False])
async def test_a_request_is_ready_during_the_hold_and_sent_after_it(stream: bool) -> None:
    near = Watched(HELLO)
    home = await slow_house(near)
    serving = home.begin(reply=home.reply(), stream=stream)
    await asyncio.sleep(HOLD_S / 2)
    assert (len(near.ready), near.requests) == (1, [])
    await serving
    assert near.requests == near.ready
    assert len(near.ready) == 1
    assert home.record.outcome == "ok"


@pytest.mark.parametrize("is_reached", [True, False])
async def test_what_is_refused_is_sent_to_nobody(is_reached: bool) -> None:
    logged: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))
    once = NewKey(workspace_id="acme", label="once", requests_per_minute=1, burst=1)
    near = Watched(HELLO)
    home = await house(near=near, key=once)
    await home.serve()
    home.ledger.hold_takes_s = HOLD_S
    near.unreachable = None if is_reached else broken()
    with pytest.raises(AccessError):
        await home.serve()
    assert (len(near.ready), len(near.requests), near.open_count) == (2, 1, 0)
    assert len(near.released) == (2 if is_reached else 1)
    assert len(asyncio.all_tasks()) == 1
    # A failure that nobody has read is logged once its task is gone, which its traceback keeps.
    near.unreachable = None
    gc.collect()
    assert logged == []


async def test_a_connection_that_is_being_made_is_given_up_with_a_refusal() -> None:
    once = NewKey(workspace_id="acme", label="once", requests_per_minute=1, burst=1)
    near = Watched(HELLO)
    home = await house(near=near, key=once)
    await home.serve()
    home.ledger.hold_takes_s, near.connect_s = HOLD_S, 2 * HOLD_S
    with pytest.raises(AccessError):
        await home.serve()
    assert (len(near.ready), len(near.given_up), len(near.requests)) == (2, 1, 1)
    assert len(asyncio.all_tasks()) == 1


async def test_a_hold_that_is_tried_again_makes_no_second_request_ready() -> None:
    near = Watched(HELLO)
    home = await slow_house(near)
    home.ledger.hold_tries = 2
    await home.serve()
    assert (len(near.ready), len(near.requests)) == (1, 1)


async def test_a_caller_that_leaves_during_the_hold_has_sent_nothing() -> None:
    near = Watched(HELLO)
    home = await slow_house(near)
    serving = home.begin(reply=home.reply())
    await asyncio.sleep(HOLD_S / 2)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert (len(near.ready), near.requests) == (1, [])
    assert home.record.outcome == "cancelled"
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("connect_s", [0.0, 1e9])
async def test_another_endpoint_has_its_turn_where_the_first_one_rests(connect_s: float) -> None:
    near = Watched(*[refuses(429)] * 3, HELLO)
    home = await house(near=near, far=Scripted(*[HELLO] * 3, [Silence(2.0), *HELLO]))
    while len(near.requests) < 3:
        await home.serve()
    near.ready.clear()
    near.released.clear()
    home.ledger.hold_takes_s, near.connect_s = HOLD_S, connect_s
    reply = home.reply()
    serving = home.begin(reply=reply)
    await asyncio.sleep(HOLD_S + 1.0)
    # Free for others while this answer goes on.
    assert (near.given_up if connect_s else near.released) == near.ready
    assert not reply.ended
    await serving
    assert reply.headers["x-provider-used"] == "far"
    assert (len(near.ready), len(near.requests), near.open_count) == (1, 3, 0)
    assert len(asyncio.all_tasks()) == 1


async def test_a_repeated_attempt_is_sent_anew() -> None:
    near = Watched(refuses(500), HELLO)
    home = await slow_house(near)
    await home.serve()
    assert (len(near.requests), len(near.ready)) == (2, 1)
    assert home.record.outcome == "ok"


async def test_an_endpoint_that_was_not_reached_meanwhile_fails_in_its_turn() -> None:
    near = Watched(HELLO)
    near.unreachable = broken()
    home = await slow_house(near)
    assert (await home.serve(stream=False)).status == 200
    failed, served = home.record.attempts
    assert (failed.provider, failed.error) == ("near", ErrorCode.PROVIDER_UNAVAILABLE)
    assert (served.provider, served.error) == ("near", None)


async def test_a_defect_meanwhile_is_one_of_the_attempt() -> None:
    near = Watched(HELLO)
    near.unreachable = ValueError("a defect")
    home = await slow_house(near)
    assert (await home.serve(stream=False)).status == 500
    assert home.record.outcome == "error"
    assert near.requests == []


async def test_a_connection_that_takes_longer_than_the_hold_is_awaited() -> None:
    near = Watched(HELLO)
    near.connect_s = 2 * HOLD_S
    home = await slow_house(near)
    await home.serve()
    assert (len(near.ready), len(near.requests)) == (1, 1)
    assert home.record.attempts[0].duration_ms == HOLD_S * 1000


async def test_a_connection_counts_for_the_first_token() -> None:
    near = Watched(HELLO)
    near.connect_s = 1e9
    home = await slow_house(near, far=Scripted(HELLO))
    await home.serve()
    assert (near.requests, home.record.provider) == ([], "far")
    assert home.record.attempts[0].error == ErrorCode.PROVIDER_TIMEOUT
    assert len(asyncio.all_tasks()) == 1


async def test_the_time_of_an_attempt_begins_with_its_turn() -> None:
    near = Watched([Silence(2.0), *HELLO])
    home = await slow_house(near)
    await home.serve()
    assert home.record.attempts[0].duration_ms < HOLD_S * 1000


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 2},
        {"provider": {"require_parameters": True}},
        {"messages": [{"role": "user", "content": [PICTURE]}]},
    ],
    ids=lambda fields: next(iter(fields)),
)
async def test_what_is_not_sent_as_it_came_is_made_ready_in_its_turn(
    fields: dict[str, Any],
) -> None:
    near = Watched(HELLO)
    shelf = ShelvedMedia({URL: FetchedMedia(content=PNG)})
    home = await slow_house(near, media=shelf, models=SEEING)
    call = home.call("acme/large")
    parsed = home.ingress.parse(request_body("acme/large", **fields))
    reply = home.reply()
    call = replace(call, parsed=parsed)
    serving = asyncio.create_task(generate(home.gateway, call, home.sink(call, reply)))
    await asyncio.sleep(HOLD_S / 2)
    assert (near.ready, shelf.asked) == ([], [])
    await serving


async def test_a_round_of_the_gateways_tools_is_made_ready_in_its_turn() -> None:
    near = Watched(HELLO)
    home = await tooled(near=near)
    home.ledger.hold_takes_s = HOLD_S
    await heard(home)
    assert (near.ready, len(near.requests)) == ([], 1)
