"""Background responses under `tollgate serve`, by OpenAI's SDK, while servers are killed.

Keeps C84.
"""

import asyncio
from pathlib import Path

import openai
import pytest
from openai.types.responses import Response

from tests.deployment import Deployment, Workspace
from tests.functional.test_batches import records_of, sdk, settle_what_died
from tests.functional.test_serve import served

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def ended(client: openai.AsyncOpenAI, response: Response) -> Response:
    """Poll a response as OpenAI's guide does."""
    async with asyncio.timeout(120):
        while response.status in ("queued", "in_progress"):
            await asyncio.sleep(0.1)
            response = await client.responses.retrieve(response.id)
    return response


async def check_bill(deployment: Deployment, workspace: Workspace, count: int) -> None:
    """So many generations are billed, each once; nothing is held."""
    billed = [it for it in await records_of(deployment, workspace) if it.outcome == "ok"]
    assert len(billed) == count
    balance = await deployment.administration.credits.balance(workspace.id)
    spent = sum(record.cost_nano_usd for record in billed)
    assert (balance.spent_nano_usd, balance.held_nano_usd) == (spent, 0)


async def test_c84_openais_sdk_runs_background_responses_under_serve(
    deployment: Deployment, tmp_path: Path
) -> None:
    workspace = await deployment.workspace(response_days=7)
    async with (
        served(deployment, TOLLGATE_OBJECTS_FOLDER=str(tmp_path)) as server,
        sdk(server, workspace) as client,
    ):
        queued = await client.responses.create(
            model="test/echo", input="Say it again.", background=True
        )
        assert (queued.status, queued.background) == ("queued", True)
        answered = await ended(client, queued)
        assert (answered.status, answered.id) == ("completed", queued.id)
        assert answered.output_text
        cursor, id_ = -1, ""
        stream = await client.responses.create(
            model="test/echo", input="Say it again.", background=True, stream=True
        )
        async for event in stream:
            cursor = event.sequence_number
            if event.type == "response.created":
                id_ = event.response.id
            if event.type == "response.in_progress":
                break
        await stream.close()
        kinds = []
        async for event in await client.responses.retrieve(id_, stream=True, starting_after=cursor):
            assert event.sequence_number == cursor + 1
            cursor = event.sequence_number
            kinds.append(event.type)
        assert kinds[-1] == "response.completed"
        assert (await client.responses.retrieve(id_)).output_text == answered.output_text
        assert (await client.responses.cancel(id_)).status == "completed"
        await client.responses.delete(id_)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(id_)
        other = await deployment.workspace(response_days=7)
        async with sdk(server, other) as stranger:
            with pytest.raises(openai.NotFoundError):
                await stranger.responses.cancel(queued.id)
        await check_bill(deployment, workspace, 2)


@pytest.mark.nightly
async def test_c84_a_server_is_killed_and_each_response_is_once_on_the_bill(
    deployment: Deployment, tmp_path: Path
) -> None:
    workspace, count = await deployment.workspace(response_days=7), 40
    async with served(deployment, TOLLGATE_OBJECTS_FOLDER=str(tmp_path)) as server:
        async with sdk(server, workspace) as client:
            queued = [
                await client.responses.create(
                    model="test/echo", input=f"Say {number}.", background=True
                )
                for number in range(count)
            ]
        server.process.kill()
        await server.process.wait()
    async with (
        served(deployment, TOLLGATE_OBJECTS_FOLDER=str(tmp_path)) as server,
        sdk(server, workspace) as client,
    ):
        answered = await asyncio.gather(*(ended(client, each) for each in queued))
        assert {each.status for each in answered} == {"completed"}
        await settle_what_died(deployment)
        await check_bill(deployment, workspace, count)
