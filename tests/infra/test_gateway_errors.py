"""The template's own error replies, as clients of the stage get them.

Keeps C41, C43, C44.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.emulator import Emulator
from tests.emulator.front import PAYLOAD_BYTES_MAX
from tests.emulator.puppetry import SAMPLES, Gate, end, opened, request, streamed
from tests.emulator.staging import PUPPET
from tests.infra.test_template import CHAT_PATH, gateway_errors
from tests.infra.translation import Stack


@pytest.fixture
async def gate() -> AsyncIterator[Gate]:
    async with Gate() as gate:
        yield gate


@pytest.mark.parametrize("in_flight_max", [1, 2], ids=["on demand", "managed"])
async def test_c43_a_request_that_no_environment_takes_is_503_with_retry_after(
    stack: Stack, gate: Gate, in_flight_max: int
) -> None:
    async with Emulator(gateway_responses=gateway_errors(stack)) as emulator:
        await emulator.start_function(
            name="chat",
            command=PUPPET,
            env={"GATE_PORT": str(gate.port)},
            mode="STREAM",
            timeout_s=60,
            throttles=True,
            in_flight_max=in_flight_max,
            routes=[f"POST {CHAT_PATH}"],
            task_root=SAMPLES,
        )
        url = emulator.url + CHAT_PATH
        # Its head is there and its end is not, so that it occupies the only environment, or half
        # of it.
        first = await request(url, {"steps": [*opened(), ["wait", "held"], *end()]})
        waiting = [
            asyncio.create_task(request(url, {"steps": streamed()}))
            for _ in range(in_flight_max - 1)
        ]
        function = emulator.functions["chat"]
        while len(function.invocations) < in_flight_max:  # noqa: ASYNC110 - the client's request
            await asyncio.sleep(0)
        refused = await request(url, {"steps": []})
        assert (refused.status, refused.headers["retry-after"]) == (503, ["1"])
        error = (await refused.json())["error"]
        assert (error["code"], error["type"]) == ("service_unavailable", "server_error")
        assert error["request_id"] == refused.headers["x-request-id"][0]
        assert refused.headers["access-control-allow-origin"] == ["*"]
        refused.close()
        await gate.open("held")
        first.close()
        for second in await asyncio.gather(*waiting):
            assert second.status == 200
            second.close()


async def test_c41_an_unknown_route_and_too_much_have_the_codes_of_the_contract(
    stack: Stack, gate: Gate
) -> None:
    async with Emulator(gateway_responses=gateway_errors(stack)) as emulator:
        await emulator.start_function(
            name="chat",
            command=PUPPET,
            env={"GATE_PORT": str(gate.port)},
            mode="STREAM",
            timeout_s=60,
            routes=[f"POST {CHAT_PATH}"],
            task_root=SAMPLES,
        )
        for path, body, status, code in (
            ("/nowhere", b"{}", 404, "not_found"),
            (CHAT_PATH, b"x" * (PAYLOAD_BYTES_MAX + 1), 413, "payload_too_large"),
        ):
            refused = await request(emulator.url + path, body)
            error = (await refused.json())["error"]
            assert (refused.status, error["code"]) == (status, code)
            assert ("POST /v1/files/presigned" in error["message"]) is (status == 413)
            refused.close()
