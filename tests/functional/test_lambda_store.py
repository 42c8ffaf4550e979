"""DynamoDB stops, or a process is killed, in the middle of a request on the deployed path.

Keeps C43, C62.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from openai import (
    APIConnectionError,
    APIError,
    AsyncOpenAI,
    AsyncStream,
    InternalServerError,
)
from openai.types.chat import ChatCompletionChunk

from tests.clocks import ShiftedClock
from tests.deployed_functions import FUNCTIONS
from tests.deployment import (
    Deployment,
    Workspace,
    deployed,
    environment,
    open_stores,
)
from tests.ministack import Ministack, ministack_command, stoppable_ministack
from tests.upstream.speakers import OPENAI
from tollgate.core.records.generation import GenerationRecord
from tollgate.engine.generate import SETTLE_BUDGET_S
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S, SweepReport
from tollgate.wiring.upkeep import wire_upkeep

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "/v1/chat/completions"
ASKED: dict[str, Any] = {
    "model": "alpha/one",
    "messages": [{"role": "user", "content": "Say it"}],
}
FRAMES = OPENAI.text(["Hello", " world"])
# Whoever takes longer is killed by the emulator, which the tests would see.
BUDGET_S = SETTLE_BUDGET_S + 4


@pytest.fixture(scope="module")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ministack]:
    """A DynamoDB of this module's own."""
    if ministack_command() is None:
        pytest.skip("ministack is not installed: run `make .tools/ministack/stamp`")
    with stoppable_ministack(tmp_path_factory.mktemp("ministack")) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fragile(
    ministack: Ministack, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    """A deployment on it."""
    async with deployed(ministack.url, tmp_path_factory.mktemp("fragile")) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def workspace(fragile: Deployment) -> Workspace:
    """Credit and keys."""
    return await fragile.workspace()


@pytest_asyncio.fixture(loop_scope="module")
async def client(fragile: Deployment, workspace: Workspace) -> AsyncIterator[AsyncOpenAI]:
    """The official SDK."""
    fragile.upstreams.alpha.reset()
    async with fragile.client(workspace.inference) as sdk:
        yield sdk


async def begun(fragile: Deployment, client: AsyncOpenAI) -> AsyncStream[ChatCompletionChunk]:
    """A stream of which the client has read the first word."""
    fragile.upstreams.alpha.enqueue(OPENAI.script(FRAMES, lock_step=True))
    for _ in range(2):
        await fragile.upstreams.alpha.release()
    stream: AsyncStream[ChatCompletionChunk]
    stream = await client.chat.completions.create(**ASKED, stream=True)
    said = [(await anext(stream)).choices[0].delta.content for _ in range(2)]
    assert said == ["", "Hello"]
    return stream


async def rest(fragile: Deployment, stream: AsyncStream[ChatCompletionChunk]) -> str:
    """What is said until the stream ends, or breaks and raises."""
    for _ in FRAMES[2:]:
        await fragile.upstreams.alpha.release()
    said = ""
    try:
        async for chunk in stream:
            said += (chunk.choices[0].delta.content or "") if chunk.choices else ""
    except APIError as error:
        said += f" [{error.code}]"
    return said


async def swept(fragile: Deployment, ahead_s: float) -> SweepReport:
    """One run of the sweeper, in so many seconds."""
    clock = ShiftedClock(ahead_s)
    async with (
        aclosing(open_stores(fragile.settings, clock)) as stores,
        aclosing(wire_upkeep(fragile.settings, stores, clock)) as upkeep,
    ):
        return await upkeep.sweeper.run()


def logged(fragile: Deployment, message: str) -> list[dict[str, Any]]:
    """The lines of the chat function's log that say so."""
    lines = [json.loads(line) for line in fragile.chat.log.splitlines() if line.startswith("{")]
    return [line for line in lines if line["message"] == message]


async def test_a_killed_process_leaves_a_hold_that_the_sweeper_resolves_as_lost(
    fragile: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    stream = await begun(fragile, client)
    await fragile.chat.kill()
    with pytest.raises((APIConnectionError, APIError, OSError)):
        async for _ in stream:
            pass
    held = await fragile.holds(workspace)
    assert len(held) == 1
    assert (await swept(fragile, 0)).found == 0, "a hold that may still be settled was taken"
    report = await swept(fragile, HOLD_LIFETIME_S + 5)
    assert (report.found, report.settled) == (1, 1)
    await fragile.assert_books_closed(workspace, 0)
    (generation_id,) = held
    shown = await fragile.ask("GET", f"/v1/generation?id={generation_id}", workspace.inference)
    assert (shown.status, shown.json["data"]["status"]) == (200, "lost")
    # The next request starts a process of its own.
    fragile.upstreams.alpha.enqueue(OPENAI.script(FRAMES))
    answer = await client.chat.completions.create(**ASKED)
    assert answer.choices[0].message.content == "Hello world"


async def test_the_sweeper_function_resolves_what_is_older_than_any_process(
    fragile: Deployment, workspace: Workspace
) -> None:
    async with aclosing(open_stores(fragile.settings, ShiftedClock(-HOLD_LIFETIME_S - 5))) as then:
        principal = await then.keys.authenticate(workspace.inference.secret)
        hold = await then.ledger.hold(principal, 1_000_000)
    assert await fragile.holds(workspace) == {hold.id: 1_000_000}
    sweeper = await fragile.emulator.start_function(
        name="sweeper",
        command=[sys.executable, "-m", "awslambdaric", "sweeper.handler"],
        env=environment(fragile.settings, endpoint_url=fragile.proxy.url),
        mode="BUFFERED",
        timeout_s=240,
        routes=[],
        task_root=FUNCTIONS,
    )
    for found in (1, 0):
        invocation = sweeper.invoke({"source": "aws.events", "detail-type": "Scheduled Event"})
        await invocation.finished.wait()
        assert invocation.error is None
        assert f'"HoldsSettled":[{found}.0]' in sweeper.log.replace(" ", "")
    await fragile.assert_books_closed(workspace, 0)
    assert (await fragile.record(workspace, hold.id)).outcome == "lost"


async def test_a_store_that_falls_silent_after_the_first_token_ends_the_stream_in_band(
    fragile: Deployment, workspace: Workspace, client: AsyncOpenAI, ministack: Ministack
) -> None:
    fragile.chat.timeout_once(BUDGET_S)
    stream = await begun(fragile, client)
    ministack.freeze()
    try:
        said = await rest(fragile, stream)
    finally:
        ministack.thaw()
    assert said == " world [service_unavailable]"
    assert_survived(fragile)
    (line,) = logged(fragile, "generation not settled")
    # Fields at their default are left out, as they are where the record is stored.
    whole = msgspec.json.decode(line["record"], type=GenerationRecord)
    assert line["level"] == "ERROR"
    assert (whole.workspace_id, whole.outcome) == (workspace.id, "ok")
    assert whole.usage.output_tokens
    assert sum(bill_line.cost_nano_usd for bill_line in whole.lines) == whole.cost_nano_usd > 0
    # What was sent into the silence may have landed: then the sweeper settles by that record.
    await swept(fragile, HOLD_LIFETIME_S + 5)
    record = await fragile.record(workspace, whole.id)
    assert (record.outcome, record.cost_nano_usd) in (("ok", whole.cost_nano_usd), ("lost", 0))
    await fragile.assert_books_closed(workspace, record.cost_nano_usd)


async def test_c43_an_answer_whose_record_is_unknown_is_not_asked_for_again_by_the_sdk(
    fragile: Deployment, workspace: Workspace, client: AsyncOpenAI, ministack: Ministack
) -> None:
    alpha = fragile.upstreams.alpha
    alpha.enqueue(OPENAI.script(FRAMES, lock_step=True))
    fragile.chat.timeout_once(BUDGET_S)
    asking = asyncio.create_task(
        client.with_options(max_retries=2).chat.completions.create(**ASKED)
    )
    await alpha.requested()
    ministack.freeze()
    try:
        for _ in FRAMES:
            await alpha.release()
        with pytest.raises(InternalServerError) as raised:
            await asking
    finally:
        ministack.thaw()
    assert (raised.value.status_code, raised.value.code) == (503, "service_unavailable")
    assert "retry-after" not in raised.value.response.headers
    assert len(alpha.received) == 1, "the SDK asked again for what may be billed"
    assert_survived(fragile)
    generation_id = raised.value.response.headers["x-generation-id"]
    assert generation_id.removeprefix("gen-") in raised.value.message
    # What was sent into the silence may have landed: either way the record says what is billed.
    await swept(fragile, HOLD_LIFETIME_S + 5)
    shown = await fragile.ask("GET", f"/v1/generation?id={generation_id}", workspace.inference)
    assert shown.json["data"]["status"] in ("ok", "lost")
    record = await fragile.record(workspace, shown.json["data"]["id"].removeprefix("gen-"))
    await fragile.assert_books_closed(workspace, record.cost_nano_usd)


async def test_c62_a_store_that_is_silent_from_the_start_refuses_in_time(
    fragile: Deployment, workspace: Workspace, client: AsyncOpenAI, ministack: Ministack
) -> None:
    fragile.upstreams.alpha.enqueue(OPENAI.script(FRAMES))
    await client.chat.completions.create(**ASKED)
    fragile.chat.timeout_once(BUDGET_S)
    ministack.freeze()
    try:
        # The key is known for five seconds, so it is the hold that cannot be made.
        answer = await fragile.ask("POST", CHAT, workspace.inference, body=ASKED)
    finally:
        ministack.thaw()
    assert answer.status == 503
    assert answer.json["error"]["code"] == "service_unavailable"
    assert int(answer.headers["retry-after"]) >= 1
    assert len(fragile.upstreams.alpha.received) == 1, "a request went out that nobody pays for"
    assert_survived(fragile)
    await swept(fragile, HOLD_LIFETIME_S + 5)
    await fragile.assert_books_closed(workspace, 9 * 1_000 + 3 * 2_000)


async def test_a_store_that_dies_after_the_first_token_and_then_refuses_everything(
    fragile: Deployment, workspace: Workspace, client: AsyncOpenAI, ministack: Ministack
) -> None:
    fragile.chat.timeout_once(BUDGET_S)
    stream = await begun(fragile, client)
    ministack.kill()
    assert await rest(fragile, stream) == " world [service_unavailable]"
    assert logged(fragile, "generation not settled")[-1]["failure"] == "LedgerError"
    for method, path, key in (
        ("POST", CHAT, workspace.inference),
        ("GET", "/v1/credits", workspace.management),
        ("GET", "/v1/health/ready", None),
    ):
        answer = await fragile.ask(method, path, key, body=ASKED if method == "POST" else None)
        assert answer.status == 503
        assert answer.json["error"]["code"] == "service_unavailable"
        assert int(answer.headers["retry-after"]) >= 1
    live = await fragile.ask("GET", "/v1/health/live")
    assert live.status == 200
    assert_survived(fragile)


def assert_survived(fragile: Deployment) -> None:
    """The emulator had no reason to kill the process."""
    assert fragile.chat.invocations[-1].error is None
    assert fragile.emulator.take_violations() == []
