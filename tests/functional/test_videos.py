"""Videos under `tollgate serve`, by OpenAI's SDK, of the simulated provider.

Keeps C84.
"""

import warnings
from decimal import Decimal
from pathlib import Path

import openai
import pytest

from tests.deployment import Deployment
from tests.functional.test_background import check_bill
from tests.functional.test_batches import records_of, sdk
from tests.functional.test_serve import served
from tests.pictures import png

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_c84_openais_sdk_makes_videos_under_serve(
    deployment: Deployment, tmp_path: Path
) -> None:
    workspace = await deployment.workspace()
    async with (
        served(deployment, TOLLGATE_OBJECTS_FOLDER=str(tmp_path)) as server,
        sdk(server, workspace) as client,
    ):
        with warnings.catch_warnings():
            # OpenAI has ended its own API, and its SDK says so at each call.
            warnings.simplefilter("ignore", DeprecationWarning)
            created = await client.videos.create(
                model="test/video",
                prompt="A bridge",
                seconds="8",
                size="1280x720",
                input_reference=("a.png", png(4, 4), "image/png"),
            )
            video = await client.videos.poll(created.id, poll_interval_ms=200)
            assert (video.id, video.status, video.progress) == (created.id, "completed", 100)
            content = (await client.videos.download_content(video.id)).read()
            assert content[4:8] == b"ftyp"
            [shown] = [it async for it in client.videos.list()]
            assert shown.id == video.id
            failed = await client.videos.create(model="test/video", prompt="Do harm")
            failed = await client.videos.poll(failed.id, poll_interval_ms=200)
            assert failed.error is not None
            assert (failed.status, failed.error.code) == ("failed", "content_filter")
            await check_bill(deployment, workspace, 1)
            assert (await client.videos.delete(video.id)).deleted
            with pytest.raises(openai.NotFoundError):
                await client.videos.download_content(video.id)
        [billed] = [it for it in await records_of(deployment, workspace) if it.outcome == "ok"]
        assert Decimal(billed.cost_nano_usd) / 10**9 == Decimal("0.8")
