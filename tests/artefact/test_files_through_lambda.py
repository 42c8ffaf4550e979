"""The tests of files on what is deployed, of the library for S3 only what is reached of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.artefact.building import install_lambda_client
from tests.buckets import create_bucket
from tests.deployed_functions import Code
from tests.deployment import Deployment, deployed
from tests.functional.test_lambda_file_parts import *  # noqa: F403
from tests.functional.test_lambda_files import *  # noqa: F403
from tests.ministack import ministack_command, running_ministack

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def keeping(
    interpreter: str, for_host: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    """The artefacts with a bucket."""
    if ministack_command() is None:
        pytest.skip("ministack is not installed: run `make .tools/ministack/stamp`")
    folder = tmp_path_factory.mktemp("keeping")
    code = Code(
        chat=for_host / "ChatFunction",
        api=for_host / "ApiFunction",
        reader=for_host / "ReaderFunction",
        python=interpreter,
        runtime=install_lambda_client(folder, interpreter),
    )
    with running_ministack(folder, services="dynamodb,s3") as url:
        create_bucket(url, "tollgate-objects")
        async with deployed(url, folder, bucket="tollgate-objects", code=code) as running:
            yield running
