"""The streaming function with SnapStart: copied after its start, then another identity's.

Keeps C62.
"""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.deployed_functions import CHAT_ROUTES
from tests.deployment import (
    Deployment,
    deployed,
)
from tests.emulator.credentials import CredentialsServer
from tests.upstream.speakers import SPEAKERS

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHAT_PATH = CHAT_ROUTES[0].removeprefix("POST ")
BEDROCK = next(it for it in SPEAKERS if it.name == "bedrock")
QUESTION = {"model": BEDROCK.model, "messages": [{"role": "user", "content": "Say it"}]}


@pytest_asyncio.fixture(loop_scope="session")
async def credentials() -> AsyncIterator[CredentialsServer]:
    async with CredentialsServer() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def restored(
    ministack_url: str,
    credentials: CredentialsServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Deployment]:
    directory = tmp_path_factory.mktemp("restored")
    async with deployed(ministack_url, directory, credentials=credentials) as running:
        yield running


def signed_by(deployment: Deployment) -> list[str]:
    """The access key ids that Bedrock was shown."""
    shown = [it.headers["authorization"] for it in deployment.upstreams.bedrock.received]
    return [found[1] for it in shown if (found := re.search(r"Credential=(\w+)/", it))]


async def test_a_restored_function_signs_with_what_it_fetched_after_the_restore(
    restored: Deployment, credentials: CredentialsServer
) -> None:
    assert restored.chat.environments[0].snapshots == 1
    workspace = await restored.workspace()
    for _ in range(2):
        restored.upstreams.bedrock.enqueue(BEDROCK.script(BEDROCK.text(["Hello"])))
        answer = await restored.ask("POST", CHAT_PATH, workspace.inference, body=QUESTION)
        assert answer.status == 200
    assert signed_by(restored) == [credentials.identity(1)] * 2
    assert credentials.given == 1
    assert restored.emulator.take_violations() == []


async def test_c62_without_credentials_a_request_is_refused_and_the_next_one_fetches_them(
    ministack_url: str, credentials: CredentialsServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    credentials.broken = True
    directory = tmp_path_factory.mktemp("restored")
    async with deployed(ministack_url, directory, credentials=credentials) as restored:
        workspace = await restored.workspace()
        refused = await restored.ask("POST", CHAT_PATH, workspace.inference, body=QUESTION)
        assert (refused.status, refused.json["error"]["code"]) == (503, "service_unavailable")
        assert restored.upstreams.bedrock.received == []
        credentials.broken = False
        restored.upstreams.bedrock.enqueue(BEDROCK.script(BEDROCK.text(["Hello"])))
        served = await restored.ask("POST", CHAT_PATH, workspace.inference, body=QUESTION)
        assert served.status == 200
        assert credentials.token not in restored.chat.log
