"""Connections reserved before their request may leave: used, given back, replaced, counted."""

import asyncio

import pytest

from tests.functional.http1.scripted_server import Answer, ask, pooled, serving, whole
from tests.functional.http1.test_pool import OK, SHORT_S
from tests.ministack import free_port
from tollgate.http1.errors import CannotConnect, ConnectionLost, ConnectTimedOut


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_nothing_is_sent_of_what_is_reserved() -> None:
    async with serving(OK, OK) as server, pooled() as pool:
        for sent in range(2):
            reserved = await pool.reserve(ask(server))
            await server.met.wait()
            await settled()
            assert len(server.requests) == sent
            reply = await pool.send_reserved(reserved)
            assert await reply.read_all(2) == b"ok"
            reply.close()
            # Sent, so that there is nothing to release.
            reserved.release()
        assert (len(server.requests), server.connections) == (2, 1)


async def test_a_connection_reserved_in_vain_serves_the_next_request() -> None:
    async with serving(OK) as server, pooled(connections_max=1) as pool:
        reserved = await pool.reserve(ask(server))
        for _ in range(2):
            reserved.release()
        await whole(pool, ask(server))
        assert (len(server.requests), server.connections) == (1, 1)


async def test_a_connection_reserved_in_vain_is_kept_no_longer() -> None:
    """Callers without credit could keep it for ever, until nobody on the way knows it."""
    async with serving() as server, pooled() as pool:
        times = []
        for _ in range(4):
            reserved = await pool.reserve(ask(server))
            times.append(reserved.kept_until_s)
            reserved.release()
        new, *kept = times
        assert (new, len(set(kept)), server.connections) == (None, 1, 1)
        assert None not in kept


async def test_a_reservation_counts_and_its_failure_does_not() -> None:
    async with serving(OK) as server, pooled(connections_max=1) as pool:
        nowhere = ask(server, url=f"http://127.0.0.1:{free_port()}/")
        with pytest.raises(CannotConnect):
            await pool.reserve(nowhere)
        reserved = await pool.reserve(ask(server))
        with pytest.raises(ConnectTimedOut):
            await pool.reserve(ask(server), connect_s=0.02)
        reserved.release()
        await whole(pool, ask(server))


async def test_a_reserved_connection_that_ends_is_replaced() -> None:
    ending = asyncio.Semaphore(0)
    first = Answer([OK, b""], "close", gate=ending)
    close = Answer(then="close")
    async with serving(first, close, OK) as server, pooled(connections_max=1) as pool:
        await whole(pool, ask(server))
        reserved = await pool.reserve(ask(server))
        ending.release()
        await server.gone.wait()
        await settled()
        with pytest.raises(ConnectionLost):
            await pool.send_reserved(reserved, connect_s=SHORT_S)
        assert (len(server.requests), server.connections) == (2, 2)
        await whole(pool, ask(server))


async def test_no_kept_connection_takes_the_place_of_a_reserved_one() -> None:
    """One that was kept too could be as dead."""
    ending, answering = asyncio.Semaphore(0), asyncio.Semaphore(0)
    first = Answer([OK[:-1], OK[-1:], b""], "close", gate=ending)
    second = Answer([OK[:-1], OK[-1:]], gate=answering)
    async with serving(first, second, OK) as server, pooled() as pool:
        both = [await pool.send(ask(server)), await pool.send(ask(server))]
        for gate, reply in ((answering, both[1]), (ending, both[0])):
            gate.release()
            assert await reply.read_all(2) == b"ok"
            reply.close()
        # The one that was used last is taken first.
        reserved = await pool.reserve(ask(server))
        ending.release()
        await server.gone.wait()
        await settled()
        reply = await pool.send_reserved(reserved)
        assert await reply.read_all(2) == b"ok"
        reply.close()
        assert server.connections == 3
