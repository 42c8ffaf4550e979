"""A deployment with a bucket, on a stand-in of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.buckets import create_bucket
from tests.deployment import Deployment, deployed
from tests.ministack import ministack_command, running_ministack

BUCKET: Final = "tollgate-objects"


@asynccontextmanager
async def deployed_with_bucket(folder: Path) -> AsyncIterator[Deployment]:
    """Deploy the functions with a bucket; skip the test where no stand-in is installed."""
    if ministack_command() is None:
        pytest.skip("ministack is not installed: run `make .tools/ministack/stamp`")
    with running_ministack(folder, services="dynamodb,s3") as url:
        create_bucket(url, BUCKET)
        async with deployed(url, folder, bucket=BUCKET) as running:
            yield running
