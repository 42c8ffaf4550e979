"""The built streaming function under AWS's own emulator of the Runtime API.

Our emulator judges the same function by AWS's documents; this is AWS's code. Keeps C8, C34.
"""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from tests.artefact.aws_emulator import AwsEmulator, Outcome, emulated, rest_event
from tests.chat_stream import accumulated, exact, frames
from tests.deployed_functions import ALPHA_KEY
from tests.deployment import (
    BODY_BYTES_MAX,
    Deployment,
    Workspace,
    environment,
)
from tests.emulator.process import EXEC_WRAPPER, FunctionConfig
from tests.upstream import Script
from tests.upstream.speakers import OPENAI
from tollgate.engine.generate import SETTLE_BUDGET_S

pytestmark = pytest.mark.asyncio(loop_scope="session")

# "Lambda quotas": of an event, and of a buffered response, which the emulator makes of a stream.
BUFFERED_BYTES_MAX: Final = 6 * 1024 * 1024
TIMEOUT_S: Final = int(SETTLE_BUDGET_S) + 3
COST: Final = 9 * 1_000 + 3 * 2_000


@dataclass(frozen=True)
class Chat:
    """The function under the emulator, and what it talks to."""

    emulator: AwsEmulator
    deployment: Deployment
    workspace: Workspace

    async def ask(self, body: object, **event: Any) -> Outcome:
        secret = self.workspace.inference.secret
        return await self.emulator.invoke(rest_event(json.dumps(body).encode(), secret) | event)

    def since_the_last_invocation(self) -> str:
        """What is in the log from the start of the last invocation on."""
        return self.emulator.log.rpartition("START RequestId: ")[2]


def question(model: str = "alpha/one", **more: object) -> dict[str, object]:
    return {"model": model, "messages": [{"role": "user", "content": "Say it"}], **more}


@pytest.fixture(scope="module")
def function(deployment: Deployment, interpreter: str, for_host: Path) -> FunctionConfig:
    """What CloudFormation would be given for the streaming function."""
    folder = for_host / "ChatFunction"
    wrapper = {EXEC_WRAPPER: str(folder / "stream_bootstrap"), "ALPHA_API_KEY": ALPHA_KEY}
    return FunctionConfig(
        name="chat",
        command=(interpreter, "-m", "awslambdaric", "chat.main"),
        env=environment(deployment.settings) | wrapper,
        handler="chat.main",
        task_root=folder,
        memory_mb=1024,
        init_timeout_s=10,
    )


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def emulator(
    function: FunctionConfig, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[AwsEmulator]:
    """One emulator for all: a test leaves it a function that serves, or one that it restarts."""
    log = tmp_path_factory.mktemp("rie") / "log"
    async with emulated(function, log, timeout_s=TIMEOUT_S) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def chat(emulator: AwsEmulator, deployment: Deployment) -> AsyncIterator[Chat]:
    await start_function(emulator)
    emulator.tap.sent.clear()
    deployment.upstreams.alpha.reset()
    prepared = Chat(emulator, deployment, await deployment.workspace())
    yield prepared
    assert deployment.upstreams.alpha.unplayed == 0
    # Whatever the test did: the next request is served as if nothing had been.
    await start_function(emulator)
    outcome = await prepared.ask(question(model="test/echo"))
    assert outcome.prelude["statusCode"] == 200


async def start_function(emulator: AwsEmulator) -> None:
    """Have the function started: to the emulator a slow start is a part of the first invocation."""
    outcome = await emulator.invoke({})
    assert outcome.prelude["statusCode"] == 200


async def test_an_answer_leaves_chunk_by_chunk_and_is_settled(chat: Chat) -> None:
    upstream, chunks = chat.deployment.upstreams.alpha, OPENAI.text(["Hello", " world"])
    upstream.enqueue(OPENAI.script(chunks, lock_step=True))
    asked = asyncio.create_task(chat.ask(question(stream=True)))
    for _ in OPENAI.begun(["Hello"]):
        await upstream.release()
    await chat.emulator.tap.saw(b'"content":"Hello"')
    assert b" world" not in chat.emulator.tap.sent
    for _ in chunks:
        await upstream.release()
    outcome = await asked
    assert outcome.status == 200
    assert outcome.prelude["statusCode"] == 200
    assert outcome.prelude["headers"]["content-type"] == "text/event-stream; charset=utf-8"
    reply = accumulated(outcome.body)
    assert reply["choices"][0]["message"]["content"] == "Hello world"
    record = await chat.deployment.record(chat.workspace, reply["id"])
    assert record.lambda_request_id is not None
    assert f"START RequestId: {record.lambda_request_id}" in chat.emulator.log
    await chat.deployment.assert_books_closed(chat.workspace, COST)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda it: it.name)
async def test_a_process_that_ends_before_the_first_byte_is_replaced(
    chat: Chat, number: signal.Signals
) -> None:
    upstream = chat.deployment.upstreams.alpha
    upstream.enqueue(Script(before_headers="hang"))
    asked = asyncio.create_task(chat.ask(question(stream=True)))
    await upstream.requested()
    chat.emulator.signal_function(number)
    outcome = await asked
    assert (outcome.status, outcome.error["errorType"]) == (502, "Runtime.ExitError")
    # The sweeper resolves what is held; here it must still be.
    assert await chat.deployment.holds(chat.workspace) != {}


async def test_a_process_that_ends_after_the_first_byte_is_replaced(chat: Chat) -> None:
    asked = asyncio.create_task(begin_an_answer_without_end(chat))
    await chat.emulator.tap.saw(b'"content":"Hello"')
    chat.emulator.signal_function(signal.SIGKILL)
    outcome = await asked
    assert (outcome.status, outcome.error["errorType"]) == (502, "Runtime.ExitError")
    assert await chat.deployment.holds(chat.workspace) != {}


@pytest.mark.nightly
async def test_a_process_that_stands_still_is_killed_at_the_deadline(chat: Chat) -> None:
    asked = asyncio.create_task(begin_an_answer_without_end(chat))
    await chat.emulator.tap.saw(b'"content":"Hello"')
    chat.emulator.signal_function(signal.SIGSTOP)
    outcome = await asked
    assert outcome.content == f"Task timed out after {TIMEOUT_S}.00 seconds".encode()
    assert await chat.deployment.holds(chat.workspace) != {}


async def test_c34_a_provider_that_hangs_is_cut_before_the_deadline_and_settled(
    chat: Chat,
) -> None:
    outcome = await begin_an_answer_without_end(chat)
    last = frames(outcome.body)[-1]
    assert last["error"]["code"] == "provider_timeout"
    record = await chat.deployment.record(chat.workspace, last["id"])
    assert (record.outcome, record.error) == ("cancelled", "provider_timeout")
    await chat.deployment.assert_books_closed(chat.workspace, record.cost_nano_usd)
    assert "Task timed out" not in chat.since_the_last_invocation()


async def test_c34_a_provider_that_says_nothing_is_a_504_before_the_deadline(chat: Chat) -> None:
    chat.deployment.upstreams.alpha.enqueue(OPENAI.script(OPENAI.begun([]), end="hang"))
    outcome = await chat.ask(question(stream=True))
    assert outcome.prelude["statusCode"] == 504
    assert exact(outcome.body)["error"]["code"] == "provider_timeout"
    await chat.deployment.assert_books_closed(chat.workspace, 0)


async def test_an_answer_that_lambda_refuses_for_its_size_is_settled_all_the_same(
    chat: Chat,
) -> None:
    words = ["x" * 100_000] * (BUFFERED_BYTES_MAX // 100_000 + 1)
    chat.deployment.upstreams.alpha.enqueue(OPENAI.script(OPENAI.text(words)))
    outcome = await chat.ask(question(stream=True))
    assert outcome.error["errorType"] == "Function.ResponseSizeTooLarge"
    assert '"failure":"RuntimeApiError: HTTP 413"' in chat.since_the_last_invocation()
    await chat.deployment.assert_books_closed(chat.workspace, COST)


async def test_an_event_that_the_emulator_cuts_at_six_megabytes_is_refused(chat: Chat) -> None:
    outcome = await chat.ask(question(user="y" * BUFFERED_BYTES_MAX))
    assert outcome.error["errorType"] == "Runtime.InvalidEvent"


async def test_c8_a_body_over_the_limit_is_413(chat: Chat) -> None:
    outcome = await chat.ask(question(user="y" * BODY_BYTES_MAX))
    assert outcome.prelude["statusCode"] == 413
    assert exact(outcome.body)["error"]["code"] == "payload_too_large"


@pytest.mark.parametrize("event", [b"{", b"", {"httpMethod": "POST"}], ids=str)
async def test_an_event_that_is_no_request_is_refused_and_the_process_goes_on(
    chat: Chat, event: object
) -> None:
    outcome = await chat.emulator.invoke(event)
    assert outcome.error["errorType"] == "Runtime.InvalidEvent"
    assert "INIT" not in chat.since_the_last_invocation()


@pytest.mark.parametrize(
    "event", [{}, [], None, "x", 1, {"invokeCompletionStatus": "done"}, {"version": "2.0"}], ids=str
)
async def test_an_event_without_a_method_is_answered_with_nothing(
    chat: Chat, event: object
) -> None:
    outcome = await chat.emulator.invoke(event)
    assert (outcome.prelude["statusCode"], outcome.body) == (200, b"")


async def test_a_function_that_cannot_start_says_why_each_time(
    function: FunctionConfig, tmp_path: Path
) -> None:
    broken = replace(function, env=function.env | {"TOLLGATE_CATALOG_FILE": "/nowhere"})
    async with emulated(broken, tmp_path / "log", timeout_s=TIMEOUT_S) as emulator:
        for _ in range(2):
            outcome = await emulator.invoke({})
            assert outcome.status == 502
            assert outcome.error["errorType"] == "Function.FileNotFoundError"


async def begin_an_answer_without_end(chat: Chat) -> Outcome:
    """Ask for an answer that says Hello and then nothing."""
    script = OPENAI.script(OPENAI.begun(["Hello"]), end="hang")
    chat.deployment.upstreams.alpha.enqueue(script)
    return await chat.ask(question(stream=True))
