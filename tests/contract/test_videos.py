"""Videos on both stores: their pages, their holds, the event of their end, and their erasure.

Keeps C84 and C99.
"""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.contract.receiver import Receiver, receiver, tls
from tests.contract.test_activity import MIDNIGHT_S
from tests.contract.test_erasure import EVE, Place
from tests.contract.test_webhooks import Hooks, Tls
from tests.memory.batches import MemoryVideoStore
from tests.stores import DynamoStores, Stores, funded_key
from tollgate.core.batches import StepTry
from tollgate.core.clock import DAY_S
from tollgate.core.errors import RequestError
from tollgate.core.files.stored import NewFile
from tollgate.core.ids import IdSource
from tollgate.core.ownership import OwnerScope
from tollgate.core.videos import VIDEO_DAYS, Video
from tollgate.stores.batches.videos import DynamoVideoStore, StoredVideoRequests
from tollgate.stores.ports.batches import BatchPlace, VideoStore
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S
from tollgate.stores.rules.videos import begin_step, finish

__all__ = ["receiver", "tls"]


def video_store(stores: Stores) -> VideoStore:
    if isinstance(stores, DynamoStores):
        ids = IdSource(stores.clock)
        return DynamoVideoStore(stores.client, stores.tables.core, ids=ids, clock=stores.clock)
    return MemoryVideoStore(stores.clock)


def a_video(stores: Stores, id_: str | None = None, **changes: Any) -> Video:
    id_ = id_ or IdSource(stores.clock).new_id()
    video = Video(
        id=f"video_{id_}",
        workspace_id="acme",
        key_id="key",
        created_s=int(stores.clock.now_s()),
        model="acme/film",
        seconds=8,
        size="1280x720",
    )
    return replace(video, **changes)


async def end(store: VideoStore, video: Video, now_s: float) -> BatchPlace:
    place, trial = BatchPlace(video.workspace_id, video.id), StepTry("try", now_s + 60)
    await store.change(place, partial(begin_step, trial=trial, now_s=now_s))
    ended = partial(finish, try_id="try", now_s=now_s, failure=None)
    assert await store.change(place, ended) is not None
    return place


async def test_c84_videos_are_listed_in_pages_by_owner_until_they_expire(stores: Stores) -> None:
    store = video_store(stores)
    videos = []
    for number in range(3):
        stores.clock.now += 1  # type: ignore[union-attr]
        videos.append(a_video(stores, member_id="ana" if number == 1 else None))
        await store.create(videos[-1])
    ids = [video.id for video in videos]
    page = await store.page("acme", limit=2)
    assert ([it.id for it in page.found], page.next) == (ids[:0:-1], ids[1])
    rest = await store.page("acme", limit=2, after=page.next)
    assert ([it.id for it in rest.found], rest.next) == (ids[:1], None)
    ascending = await store.page("acme", limit=2, after=ids[0], oldest_first=True)
    assert [it.id for it in ascending.found] == ids[1:]
    hers = await store.page("acme", limit=9, reach=OwnerScope(owner="ana"))
    assert [it.id for it in hers.found] == [ids[1]]
    assert not (await store.page("other", limit=9)).found
    with pytest.raises(RequestError, match="the id of a video"):
        await store.page("acme", limit=9, after="video_x")
    place = await end(store, videos[0], stores.clock.now_s())
    assert place not in await store.open_jobs()
    stores.clock.now += VIDEO_DAYS * DAY_S  # type: ignore[union-attr]
    assert [it.id for it in (await store.page("acme", limit=9)).found] == ids[:0:-1]


async def test_c84_the_hold_of_an_open_video_outlives_the_sweep(dynamo: DynamoStores) -> None:
    _, principal = await funded_key(dynamo, 1_000)
    hold = await dynamo.ledger.hold(principal, 400, covered=True)
    store, video = video_store(dynamo), a_video(dynamo, hold.id)
    await store.create(video)
    dynamo.clock.now += HOLD_LIFETIME_S + 60
    assert (await dynamo.sweeper.run()).found == 0
    assert (await dynamo.credits.balance("acme")).held_nano_usd == 400
    await end(store, video, dynamo.clock.now_s())
    # A hold that an ended video left behind is released.
    assert (await dynamo.sweeper.run()).settled == 1
    assert (await dynamo.credits.balance("acme")).held_nano_usd == 0


async def test_c84_the_end_of_a_video_is_an_event(
    dynamo: DynamoStores, receiver: Receiver, tls: Tls
) -> None:
    hooks = Hooks(dynamo, receiver, tls)
    await hooks.make("video.completed")
    store, video = video_store(dynamo), a_video(dynamo)
    await store.create(video)
    await end(store, video, dynamo.clock.now_s())
    for _ in range(2):
        await hooks.run()
    [event] = hooks.events
    assert (event["type"], event["data"]) == ("video.completed", {"id": video.id})


async def test_c99_the_video_of_an_end_user_is_erased_with_its_content(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    dynamo.clock.now = MIDNIGHT_S
    place, store = Place(dynamo, tmp_path), video_store(dynamo)
    requests = StoredVideoRequests(place.objects, place.logs[1])
    new = NewFile(
        workspace_id="acme",
        key_id="key",
        filename="a.mp4",
        purpose="video_output",
        media_type="video/mp4",
        expires_after_s=VIDEO_DAYS * DAY_S,
    )
    file = await place.files.create(new, b"secret")
    video = a_video(dynamo, user=EVE.id, file_ids={"video": file.id})
    await store.create(video)
    await requests.put(video, b"secret")
    at = await end(store, video, MIDNIGHT_S)
    dynamo.clock.now = MIDNIGHT_S + 7_200
    proof = await place.erase(EVE)
    assert (proof.finished_s is not None, proof.erased["jobs"]) == (True, 1)
    assert await store.get(at) is None
    assert await requests.get(video) is None
    assert await place.files.get("acme", file.id) is None
