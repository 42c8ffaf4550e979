"""Time running out on the deployed path: silent providers, and the end of the invocation.

Keeps C34.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from openai import APIStatusError

from tests.chat_stream import Json, exact, frames
from tests.deployment import Deployment, Limits, Workspace, deployed
from tests.upstream import Script
from tests.upstream.speakers import OPENAI, SPEAKERS, Speaker
from tollgate.engine.generate import SETTLE_BUDGET_S

pytestmark = pytest.mark.asyncio(loop_scope="session")
each_speaker = pytest.mark.parametrize("speaker", SPEAKERS, ids=lambda speaker: speaker.name)

# Of an invocation, what is left of it once settling has its share.
GENERATING_S = 1.0


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def impatient(
    ministack_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    directory: Path = tmp_path_factory.mktemp("impatient")
    async with deployed(ministack_url, directory, Limits(first_token_s=1, idle_s=1)) as running:
        yield running


def question(speaker: Speaker, **more: object) -> Json:
    return {
        "model": speaker.model,
        "messages": [{"role": "user", "content": "Say it"}],
        **more,
    }


async def asked(deployment: Deployment, workspace: Workspace, body: Json) -> tuple[int, bytes]:
    """The status and the whole body, as the SDK reads them."""
    async with deployment.client(workspace.inference) as client:
        completions = client.chat.completions.with_streaming_response
        try:
            async with completions.create(**body) as reply:
                return reply.status_code, await reply.read()
        except APIStatusError as refused:
            return refused.status_code, refused.response.content


@each_speaker
@pytest.mark.parametrize("before", ["headers", "the first token"])
async def test_c34_a_provider_that_never_begins_is_a_504(
    impatient: Deployment, speaker: Speaker, before: str
) -> None:
    workspace = await impatient.workspace()
    hello = speaker.script(speaker.begun([]), end="hang")
    script = Script(before_headers="hang") if before == "headers" else hello
    impatient.upstreams.of(speaker).enqueue(script)
    status, body = await asked(impatient, workspace, question(speaker, stream=True))
    assert status == 504
    assert exact(body)["error"]["code"] == "provider_timeout"
    await impatient.assert_books_closed(workspace, 0)


@each_speaker
async def test_c34_a_provider_that_falls_silent_is_a_timeout_in_band(
    impatient: Deployment, speaker: Speaker
) -> None:
    workspace = await impatient.workspace()
    impatient.upstreams.of(speaker).enqueue(speaker.script(speaker.begun(["Hello"]), end="hang"))
    status, body = await asked(impatient, workspace, question(speaker, stream=True))
    assert status == 200
    assert b'"content":"Hello"' in body
    last = frames(body)[-1]
    assert last["error"]["code"] == "provider_timeout"
    record = await impatient.record(workspace, last["id"])
    assert (record.outcome, record.cost_nano_usd) == ("error", 0)
    await impatient.assert_books_closed(workspace, 0)


@each_speaker
async def test_the_deadline_cuts_a_stream_bills_what_was_delivered_and_settles(
    deployment: Deployment, speaker: Speaker
) -> None:
    workspace = await deployment.workspace()
    deployment.upstreams.of(speaker).enqueue(
        speaker.script(speaker.begun(["Hello", " world"]), end="hang")
    )
    deployment.chat.timeout_once(SETTLE_BUDGET_S + GENERATING_S)
    status, body = await asked(deployment, workspace, question(speaker, stream=True))
    assert status == 200
    last = frames(body)[-1]
    assert last["error"]["code"] == "provider_timeout"
    record = await deployment.record(workspace, last["id"])
    assert (record.outcome, record.error) == ("cancelled", "provider_timeout")
    assert record.usage_source == "estimated"
    # "Hello world" is eleven bytes, at four to a token.
    assert record.usage.output_tokens == 3
    assert record.cost_nano_usd == sum(line.cost_nano_usd for line in record.lines) > 0
    assert exact(b'{"cost":%b}' % str(last["usage"]["cost"]).encode())["cost"].scaleb(9) == (
        record.cost_nano_usd
    )
    await deployment.assert_books_closed(workspace, record.cost_nano_usd)
    assert_survived(deployment)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_the_deadline_before_the_first_token_is_a_504(
    deployment: Deployment, *, stream: bool
) -> None:
    workspace = await deployment.workspace()
    deployment.upstreams.alpha.enqueue(OPENAI.script(OPENAI.begun([]), end="hang"))
    deployment.chat.timeout_once(SETTLE_BUDGET_S + GENERATING_S)
    status, body = await asked(deployment, workspace, question(OPENAI, stream=stream))
    assert status == 504
    assert exact(body)["error"]["code"] == "provider_timeout"
    await deployment.assert_books_closed(workspace, 0)
    assert_survived(deployment)


async def test_the_deadline_of_a_whole_answer_says_that_streaming_has_more_time(
    deployment: Deployment,
) -> None:
    workspace = await deployment.workspace()
    deployment.upstreams.alpha.enqueue(OPENAI.script(OPENAI.begun(["Hello"]), end="hang"))
    deployment.chat.timeout_once(SETTLE_BUDGET_S + GENERATING_S)
    status, body = await asked(deployment, workspace, question(OPENAI))
    assert status == 504
    error = exact(body)["error"]
    assert error["code"] == "provider_timeout"
    assert "stream: true" in error["message"]
    await deployment.assert_books_closed(workspace, 0)
    assert_survived(deployment)


def assert_survived(deployment: Deployment) -> None:
    """The emulator had no reason to kill the process, and it serves on."""
    assert deployment.chat.invocations[-1].error is None
    assert deployment.chat.environments_started == 1
    assert deployment.emulator.take_violations() == []
