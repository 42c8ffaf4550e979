from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from infra.artefact.wheels import Target
from tests.artefact.building import install_lambda_client, python_3_13, sam_build
from tests.deployed_functions import Code
from tests.deployment import (
    Deployment,
    deployed,
)
from tests.functional.conftest import client, workspace
from tests.ministack import ministack_url

__all__ = ["client", "ministack_url", "workspace"]


@pytest.fixture(scope="session")
def interpreter() -> str:
    """What runs the artefacts here, as Lambda's python3.13 does there."""
    python = python_3_13()
    if python is None:
        pytest.skip("no python3.13 runs here: name one with PYTHON313=/path/to/python3.13")
    return python


@pytest.fixture(scope="session")
def for_lambda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artefacts that are deployed."""
    return sam_build(tmp_path_factory.mktemp("lambda"), Target.LAMBDA)


@pytest.fixture(scope="session")
def for_host(interpreter: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with this machine's wheels."""
    return sam_build(tmp_path_factory.mktemp("host"), Target.HOST)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def deployment(
    ministack_url: str, interpreter: str, for_host: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    """The artefacts behind the emulator, each run by Python 3.13 from its own folder."""
    directory = tmp_path_factory.mktemp("deployment")
    code = Code(
        chat=for_host / "ChatFunction",
        api=for_host / "ApiFunction",
        reader=for_host / "ReaderFunction",
        python=interpreter,
        runtime=install_lambda_client(directory, interpreter),
    )
    async with deployed(ministack_url, directory, code=code) as running:
        yield running
