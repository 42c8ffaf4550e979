"""Connections: made, refused, kept, dead."""

import socket

from tests.functional.providers.one_provider import CHAT, OneProvider, both, script
from tests.upstream import FakeUpstream
from tollgate.core.content import Text
from tollgate.core.errors import ErrorCode


@both
async def test_a_refused_connection_is_provider_unavailable_and_names_no_address(
    transport: str, provider: OneProvider
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = await provider.failure(transport, base_url=f"http://127.0.0.1:{port}")
    assert error.code is ErrorCode.PROVIDER_UNAVAILABLE
    assert "127.0.0.1" not in error.message


@both
async def test_a_name_that_does_not_resolve_is_provider_unavailable(
    transport: str, provider: OneProvider
) -> None:
    error = await provider.failure(transport, base_url="http://provider.invalid")
    assert error.code is ErrorCode.PROVIDER_UNAVAILABLE


@both
async def test_connections_are_kept_and_used_again(
    transport: str, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(script(transport), script(transport))
    await provider.answer(transport)
    await provider.answer(transport)
    assert upstream.connections == 1


@both
async def test_a_kept_connection_that_dies_with_a_request_is_not_tried_again(
    transport: str, upstream: FakeUpstream, provider: OneProvider
) -> None:
    """The provider has read the request and may bill it: only the router repeats it."""
    upstream.enqueue(
        script(transport), script(transport, before_headers="close"), script(transport)
    )
    await provider.answer(transport)
    assert (await provider.failure(transport)).code is ErrorCode.PROVIDER_UNAVAILABLE
    assert (await provider.answer(transport)).parts == (Text(text="Hello world"),)
    assert [received.connection for received in upstream.received] == [1, 1, 2]


@both
async def test_a_kept_connection_that_ended_before_a_request_is_replaced(
    transport: str, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(script(transport), script(transport))
    await provider.answer(transport)
    await upstream.end_connections()
    await provider.answer(transport)
    assert [received.connection for received in upstream.received] == [1, 2]


@both
async def test_a_new_connection_that_dies_is_not_tried_again(
    transport: str, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(script(transport, before_headers="close"), script(transport))
    error = await provider.failure(transport)
    assert error.code is ErrorCode.PROVIDER_UNAVAILABLE
    assert len(upstream.received) == 1


async def test_a_connection_is_kept_though_its_body_ends_after_the_end_mark(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(script(CHAT, end="late"), script(CHAT))
    await provider.answer(CHAT)
    await provider.answer(CHAT)
    assert upstream.connections == 1
