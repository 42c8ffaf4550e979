"""The client against a scripted server: calls sent again, calls never sent again, failures."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager

import pytest

from tests.deployment import PATIENCE_S
from tests.ministack import free_port
from tests.stores import HandClock, aws_client
from tollgate.aws.aws_json import AwsJson
from tollgate.aws.failures import (
    ConditionFailed,
    StoreError,
    StoreRejected,
    StoreUnavailable,
    TransactionCancelled,
)

# One scripted answer: raw bytes to send, or None to drop the connection without a word.
Answer = bytes | None


def http(status: int, body: str) -> bytes:
    return (
        f"HTTP/1.1 {status} X\r\nContent-Type: application/x-amz-json-1.0\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def failure(code: str, status: int = 400, more: str = "") -> bytes:
    return http(
        status, f'{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"m"{more}}}'
    )


SHORT_S = 0.5
OK = http(200, '{"Item":{}}')


class Script:
    """A server that gives the scripted answers in order, one a request, then hangs."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(length))
                if not self.answers:
                    await asyncio.Event().wait()
                answer = self.answers.pop(0)
                if answer is None:
                    return
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


@asynccontextmanager
async def serving(script: Script) -> AsyncIterator[AwsJson]:
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = aws_client(f"http://127.0.0.1:{port}")
    try:
        yield client
    finally:
        await client.close()
        server.close()


async def test_a_call_is_a_signed_post_of_json() -> None:
    script = Script(OK)
    async with serving(script) as client:
        assert await client.call("GetItem", {"TableName": "t"}) == {"Item": {}}

    head, _, body = script.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST / HTTP/1.1\r\n")
    assert b"x-amz-target: DynamoDB_20120810.GetItem" in head
    assert b"authorization: AWS4-HMAC-SHA256 Credential=test/20261121/eu-central-1/dynamodb" in head
    assert b"content-type: application/x-amz-json-1.0" in head
    assert head.lower().count(b"\r\nhost:") == 1
    assert body == b'{"TableName":"t"}'


@pytest.mark.parametrize(
    "answer",
    [
        failure("ThrottlingException"),
        failure("ProvisionedThroughputExceededException"),
        failure("TransactionConflictException"),
        failure("InternalServerError", 500),
        http(503, "busy"),
        http(200, "{"),
        failure(
            "TransactionCanceledException",
            more=',"CancellationReasons":[{"Code":"None"},{"Code":"TransactionConflict"}]',
        ),
        None,
    ],
)
async def test_what_may_succeed_later_is_sent_three_times(answer: Answer) -> None:
    script = Script(answer, answer, OK)
    async with serving(script) as client:
        assert await client.call("PutItem", {}) == {"Item": {}}
    assert len(script.requests) == 3

    script = Script(answer, answer, answer, OK)
    async with serving(script) as client:
        with pytest.raises(StoreUnavailable):
            await client.call("PutItem", {})
    assert len(script.requests) == 3


@pytest.mark.parametrize(
    ("answer", "maybe_applied"),
    [
        (failure("ThrottlingException"), False),
        (failure("TransactionConflictException"), False),
        (failure("InternalServerError", 500), True),
        (http(200, "{"), True),
        (None, True),
    ],
)
async def test_a_hold_is_sent_once_and_says_whether_it_may_have_landed(
    answer: Answer, maybe_applied: bool
) -> None:
    script = Script(answer, OK)
    async with serving(script) as client:
        with pytest.raises(StoreUnavailable) as raised:
            await client.call("UpdateItem", {}, attempts_max=1)

    assert len(script.requests) == 1
    assert raised.value.maybe_applied is maybe_applied


async def test_one_attempt_that_may_have_landed_outlives_those_that_did_not() -> None:
    script = Script(None, failure("ThrottlingException"), failure("ThrottlingException"))
    async with serving(script) as client:
        with pytest.raises(StoreUnavailable) as raised:
            await client.call("PutItem", {})

    assert raised.value.maybe_applied


async def test_a_dead_pooled_socket_is_replaced_at_once() -> None:
    script = Script(OK, None, OK)
    clock = HandClock()
    before_s = clock.now
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = aws_client(f"http://127.0.0.1:{port}", clock=clock)

    await client.call("GetItem", {})
    await client.call("GetItem", {})

    assert len(script.requests) == 3
    assert clock.now == before_s
    await client.close()
    server.close()


async def test_a_refused_connection_has_changed_nothing() -> None:
    client = aws_client(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(StoreUnavailable) as raised:
        await client.call("UpdateItem", {}, attempts_max=1)
    await client.close()

    assert not raised.value.maybe_applied


async def test_a_connection_that_is_not_made_in_time_has_changed_nothing() -> None:
    """A server that takes no connections, its queue being full, drops what asks for one."""
    with socket.socket() as busy, ExitStack() as waiting:
        busy.bind(("127.0.0.1", 0))
        busy.listen(0)
        for _ in range(2):
            queued = waiting.enter_context(socket.socket())
            queued.setblocking(False)
            queued.connect_ex(busy.getsockname())
        client = aws_client(f"http://127.0.0.1:{busy.getsockname()[1]}", timeout_s=0.3)
        with pytest.raises(StoreUnavailable, match="no connection in time") as raised:
            await client.call("UpdateItem", {}, attempts_max=1)
        await client.close()

    assert not raised.value.maybe_applied


async def test_a_silent_server_is_given_up_and_may_have_applied_the_call() -> None:
    async with serving(Script()) as client:
        with pytest.raises(StoreUnavailable, match="timed out") as raised:
            await client.call("UpdateItem", {}, attempts_max=1)

    assert raised.value.maybe_applied


async def test_a_reply_that_came_while_the_process_had_no_cpu_is_no_timeout() -> None:
    received, answer, answered = threading.Event(), threading.Event(), threading.Event()

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            while b"{}" not in connection.recv(65_536):
                pass
            received.set()
            answer.wait(PATIENCE_S)
            connection.sendall(OK)
            answered.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = aws_client(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_s=SHORT_S)
        serving = asyncio.create_task(asyncio.to_thread(serve, listener))
        calling = asyncio.create_task(client.call("UpdateItem", {}, attempts_max=1))
        assert await asyncio.to_thread(received.wait, PATIENCE_S)
        answer.set()
        # The event loop stands still from here on, until the call's time is over.
        assert answered.wait(PATIENCE_S)
        threading.Event().wait(SHORT_S)
        assert await calling == {"Item": {}}
        await serving
        await client.close()


async def test_an_endless_reply_is_cut() -> None:
    body = b"x" * (9 * 1024 * 1024)
    script = Script(b"HTTP/1.1 200 X\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    async with serving(script) as client:
        with pytest.raises(StoreUnavailable, match="too long"):
            await client.call("Scan", {}, attempts_max=1)


@pytest.mark.parametrize(
    ("answer", "check"),
    [
        (
            failure("ConditionalCheckFailedException", more=',"Item":{"av":{"N":"1"}}'),
            lambda error: isinstance(error, ConditionFailed) and error.item == {"av": {"N": "1"}},
        ),
        (
            failure("ConditionalCheckFailedException"),
            lambda error: isinstance(error, ConditionFailed) and error.item is None,
        ),
        (
            failure(
                "TransactionCanceledException",
                more=',"CancellationReasons":[{"Code":"ConditionalCheckFailed"},'
                '{"Code":"TransactionConflict"}]',
            ),
            lambda error: (
                isinstance(error, TransactionCancelled)
                and [reason.code for reason in error.reasons]
                == ["ConditionalCheckFailed", "TransactionConflict"]
            ),
        ),
        (
            failure("ResourceNotFoundException"),
            lambda error: (
                isinstance(error, StoreRejected)
                and error.code == "ResourceNotFoundException"
                and not error.maybe_applied
            ),
        ),
        (http(403, "<html>"), lambda error: isinstance(error, StoreRejected)),
    ],
)
async def test_a_definite_answer_is_typed_and_not_asked_for_again(
    answer: bytes, check: Callable[[Exception], bool]
) -> None:
    script = Script(answer, OK)
    async with serving(script) as client:
        with pytest.raises(StoreError) as raised:
            await client.call("PutItem", {})

    assert check(raised.value)
    assert len(script.requests) == 1
