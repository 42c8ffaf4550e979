"""Videos: made by a provider once, billed once, and stored for their owner.

Keeps C84.
"""

import asyncio
import warnings
from collections import Counter
from contextlib import suppress
from typing import Any

import httpx
import openai
import pytest
from urllib3.filepost import encode_multipart_formdata

from tests.batches import Died, Fate
from tests.memory.batches import MemoryVideoRequests
from tests.pictures import data_url, png
from tests.stores import TESTER
from tests.unit.engine.guardrails.homes import patterns
from tests.videos import (
    EIGHT_SECONDS_NANO_USD,
    MODEL,
    MP4,
    Filming,
    open_studio,
    refused,
    unreachable,
)
from tollgate.core.clock import DAY_S
from tollgate.core.errors import AccessError, ErrorCode
from tollgate.core.videos import MADE_WITHIN_S, VIDEO_DAYS, Video
from tollgate.engine.batches.polling import BatchPolling
from tollgate.stores.rules.level_settings import MemberSettings
from tollgate.web.videos.working import DOWNLOADS_MAX


async def check_once(filming: Filming, id_: str) -> None:
    """Assert that the video is complete, submitted once and billed once, and nothing is held."""
    video = await filming.video(id_)
    assert (video.status, video.failure) == ("completed", None)
    assert len(filming.near.submitted) == 1
    [record] = filming.records
    assert (record.id, record.outcome) == (video.bare_id, "ok")
    assert filming.home.spent_nano_usd == record.cost_nano_usd == EIGHT_SECONDS_NANO_USD
    assert filming.home.held_nano_usd == 0


async def test_c84_a_video_is_queued_made_billed_and_downloaded() -> None:
    filming = await open_studio()
    reply = await filming.ask(user="ana")
    assert reply.status == 200, reply.body
    queued = reply.json
    assert (queued["status"], queued["seconds"], queued["size"]) == ("queued", "8", "1280x720")
    # The wallet and the key hold exactly the price before anything is sent.
    assert filming.home.held_nano_usd == 2 * EIGHT_SECONDS_NANO_USD
    assert not filming.near.submitted
    [place] = filming.woken
    assert place.batch_id == queued["id"]
    worker = filming.worker()
    assert await worker.work(place, filming.deadline) is not None
    await filming.home.gateway.clock.sleep(60)
    assert await worker.work(place, filming.deadline) is not None
    running = (await filming.call("GET", f"/{queued['id']}")).json
    assert (running["status"], running["progress"]) == ("in_progress", 40)
    early = await filming.call("GET", f"/{queued['id']}/content")
    assert (early.status, early.error["param"]) == (404, "variant")
    await filming.run(queued["id"])
    await check_once(filming, queued["id"])
    assert filming.near.fields() == {
        "model": b"film-1",
        "prompt": b"A bridge",
        "seconds": b"8",
        "size": b"1280x720",
    }
    shown = (await filming.call("GET", f"/{queued['id']}")).json
    assert (shown["status"], shown["progress"], shown["prompt"]) == ("completed", 100, None)
    assert shown["expires_at"] == shown["completed_at"] + VIDEO_DAYS * DAY_S
    content = await filming.call("GET", f"/{queued['id']}/content")
    [file] = filming.shelf.files.values()
    assert (content.status, content.headers["location"]) == (302, f"http://bucket.test/{file.id}")
    assert (filming.shelf.contents[file.id], file.media_type) == (MP4, "video/mp4")
    missing = await filming.call("GET", f"/{queued['id']}/content?variant=thumbnail")
    assert missing.status == 404
    [record] = filming.records
    [line] = record.lines
    assert (line.item, line.quantity, line.usd_per_million) == ("video_second", 8, 100_000)
    assert record.trace.picture is not None
    assert record.trace.picture.size == "1280x720"


async def test_c84_the_size_sets_the_price_and_the_picture_is_sent() -> None:
    filming = await open_studio()
    fields = {"model": MODEL, "prompt": "A bridge", "seconds": "8", "size": "1792x1024"}
    picture = ("bridge.png", png(4, 4), "image/png")
    body, kind = encode_multipart_formdata({**fields, "input_reference": picture})
    sent = await filming.call("POST", body=body, **{"content-type": kind})
    assert sent.status == 200, sent.body
    by_url = await filming.ask(input_reference={"image_url": data_url(png(4, 4))})
    for reply in (sent, by_url):
        assert (await filming.run(reply.json["id"])).status == "completed"
    costs = sorted(record.cost_nano_usd for record in filming.records)
    assert costs == [EIGHT_SECONDS_NANO_USD, 3 * EIGHT_SECONDS_NANO_USD]
    for number in (0, 1):
        assert filming.near.fields(number)["input_reference"] == png(4, 4)


@pytest.mark.parametrize(("more", "status"), [(-1, 402), (0, 200)])
async def test_c84_a_wallet_below_the_price_is_refused_before_anything_is_sent(
    more: int, status: int
) -> None:
    filming = await open_studio(funds_nano_usd=EIGHT_SECONDS_NANO_USD + more)
    reply = await filming.ask()
    assert reply.status == status, reply.body
    assert len(filming.woken) == (1 if status == 200 else 0)
    assert filming.home.held_nano_usd == (2 * EIGHT_SECONDS_NANO_USD if status == 200 else 0)
    assert not filming.near.submitted


@pytest.mark.parametrize("applied", [False, True])
async def test_c84_a_worker_of_videos_may_die_at_any_call_of_a_store(applied: bool) -> None:
    at = 0
    unknown = 0
    while True:
        filming = await open_studio()
        id_ = (await filming.ask()).json["id"]
        fate = Fate(at, applied=applied)
        try:
            await filming.run(id_, filming.worker(fate))
        except Died:
            await filming.run(id_)
        video = await filming.video(id_)
        assert len(filming.near.submitted) <= 1
        if video.status == "failed":
            # The worker died during the submission, which is never repeated.
            unknown += 1
            assert filming.home.spent_nano_usd == 0
            assert filming.home.held_nano_usd == 0
            assert len(filming.records) == 1
        else:
            await check_once(filming, id_)
        if not fate.is_dead:
            break
        at += 1
    assert at > 8
    assert unknown == 1


async def test_c84_a_message_for_a_video_that_is_delivered_twice_submits_once() -> None:
    filming = await open_studio()
    id_ = (await filming.ask()).json["id"]
    await asyncio.gather(*(filming.run(id_) for _ in range(3)))
    await check_once(filming, id_)


async def test_c84_a_worker_has_few_contents_in_memory_at_a_time() -> None:
    filming = await open_studio()
    ids = [(await filming.ask()).json["id"] for _ in range(2 * DOWNLOADS_MAX)]
    worker = filming.worker()
    ended = await asyncio.gather(*(filming.run(id_, worker) for id_ in ids))
    assert {video.status for video in ended} == {"completed"}
    assert filming.near.at_once_max == DOWNLOADS_MAX


async def test_c84_what_a_provider_may_have_accepted_is_not_submitted_again() -> None:
    for failure in (unreachable(), refused(503)):
        filming = await open_studio()
        filming.near.refusals = [failure]
        video = await filming.run((await filming.ask()).json["id"])
        assert (video.status, filming.near.submitted, filming.far.submitted) == ("failed", [], [])
        [record] = filming.records
        assert (record.outcome, record.cost_nano_usd) == ("error", 0)
        assert filming.home.spent_nano_usd == filming.home.held_nano_usd == 0


async def test_c84_a_refused_submission_goes_to_the_next_endpoint_or_waits() -> None:
    filming = await open_studio()
    filming.near.refusals = [refused(401)]
    video = await filming.run((await filming.ask()).json["id"])
    assert video.status == "completed"
    [record] = filming.records
    assert (record.provider, record.cost_nano_usd) == ("far", EIGHT_SECONDS_NANO_USD // 2)
    busy = await open_studio()
    busy.near.refusals, busy.far.refusals = [refused(429)], [refused(429)]
    id_ = (await busy.ask()).json["id"]
    await busy.run(id_)
    await check_once(busy, id_)


async def test_c84_a_failed_video_costs_nothing_and_states_why() -> None:
    filming = await open_studio()
    filming.near.error = {"code": "moderation_blocked", "message": "Not this."}
    id_ = (await filming.ask()).json["id"]
    video = await filming.run(id_)
    assert (video.status, video.event_type) == ("failed", "video.failed")
    shown = (await filming.call("GET", f"/{id_}")).json
    assert shown["error"]["code"] == "content_filter"
    assert (shown["completed_at"], shown["expires_at"]) == (None, None)
    [record] = filming.records
    assert (record.outcome, record.cost_nano_usd, record.error) == ("error", 0, "content_filter")
    assert [attempt.provider for attempt in record.attempts] == ["near"]
    assert filming.home.spent_nano_usd == filming.home.held_nano_usd == 0


async def test_c84_a_video_that_takes_too_long_fails_within_its_day() -> None:
    filming = await open_studio()
    filming.near.polls = 10_000
    began_s = filming.home.gateway.clock.now_s()
    video = await filming.run((await filming.ask()).json["id"])
    assert (video.status, video.failure and video.failure.code) == ("failed", "provider_timeout")
    assert filming.home.gateway.clock.now_s() - began_s < MADE_WITHIN_S + 120
    assert filming.home.spent_nano_usd == filming.home.held_nano_usd == 0


async def test_c84_bytes_that_are_no_video_and_full_storage_are_not_billed() -> None:
    filming = await open_studio()
    filming.near.content = b'{"error": "gone"}'
    assert (await filming.run((await filming.ask()).json["id"])).status == "failed"
    full = await open_studio()
    full.shelf.full = AccessError(ErrorCode.STORAGE_QUOTA_EXCEEDED, "There is no room.")
    video = await full.run((await full.ask()).json["id"])
    assert (video.status, video.failure and video.failure.code) == (
        "failed",
        "storage_quota_exceeded",
    )
    for each in (filming, full):
        assert each.home.spent_nano_usd == each.home.held_nano_usd == 0


async def test_c84_the_video_of_another_tenant_or_member_is_not_found() -> None:
    filming = await open_studio()
    id_ = (await filming.ask()).json["id"]
    await filming.run(id_)
    tenant = await filming.key("other")
    members = filming.home.stores.members
    await members.create("acme", "ana", MemberSettings(role="developer"), by=TESTER)
    member = await filming.key(member_id="ana")
    for key in (tenant, member):
        for method, path in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
            reply = await filming.call(method, f"/{id_}{path}", key=key)
            assert reply.status == 404, (method, path)
        assert (await filming.call("GET", key=key)).json["data"] == []
    assert (await filming.call("GET", f"/{id_}")).status == 200


async def test_c84_videos_expire_and_are_deleted_with_their_content() -> None:
    filming = await open_studio()
    ids = [(await filming.ask()).json["id"] for _ in range(3)]
    waiting = await filming.call("DELETE", f"/{ids[0]}")
    assert (waiting.status, waiting.error["param"]) == (400, "video_id")
    for id_ in ids:
        await filming.run(id_)
    page = (await filming.call("GET", "?limit=2")).json
    assert ([it["id"] for it in page["data"]], page["has_more"]) == (ids[:0:-1], True)
    rest = (await filming.call("GET", f"?after={page['last_id']}&limit=2")).json
    assert ([it["id"] for it in rest["data"]], rest["has_more"]) == (ids[:1], False)
    ascending = (await filming.call("GET", "?order=asc")).json
    assert [it["id"] for it in ascending["data"]] == ids
    deleted = await filming.call("DELETE", f"/{ids[0]}")
    assert deleted.json == {"id": ids[0], "object": "video.deleted", "deleted": True}
    assert len(filming.shelf.files) == 2
    assert (await filming.call("GET", f"/{ids[0]}/content")).status == 404
    await filming.home.gateway.clock.sleep(VIDEO_DAYS * DAY_S)
    assert (await filming.call("GET", f"/{ids[1]}/content")).status == 404
    assert (await filming.call("GET")).json["data"] == []


class SlowRequests(MemoryVideoRequests):
    """Requests whose deletion takes time, so that deletions of one video overlap."""

    async def delete(self, video: Video) -> None:
        await asyncio.sleep(1.0)
        await super().delete(video)


async def test_c84_of_many_deletions_of_one_video_at_once_one_succeeds() -> None:
    filming = await open_studio()
    filming.requests = SlowRequests()
    filming.api.changes["videos"] = filming.services
    id_ = (await filming.ask()).json["id"]
    await filming.run(id_)
    replies = await asyncio.gather(*(filming.call("DELETE", f"/{id_}") for _ in range(24)))
    assert Counter(reply.status for reply in replies) == {200: 1, 404: 23}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seconds", "0"),
        ("seconds", "61"),
        ("seconds", "four"),
        ("size", "large"),
        ("prompt", ""),
        ("prompt", "x" * 32_001),
        ("input_reference", {"image_url": "data:image/png;base64,eA=="}),
        ("input_reference", {}),
    ],
)
async def test_c84_bad_input_for_a_video_names_the_field(field: str, value: object) -> None:
    filming = await open_studio()
    reply = await filming.ask(**{field: value})
    assert reply.status == 400, reply.body
    assert reply.error["param"].startswith(field)
    assert filming.home.held_nano_usd == 0


async def test_c84_a_video_is_explained_and_listed_like_any_work() -> None:
    filming = await open_studio()
    body = {"model": MODEL, "prompt": "A bridge", "seconds": "8", "size": "1792x1024"}
    path = "/v1/route/explain?format=videos"
    found = await filming.api("POST", path, key=filming.secret, content=body)
    assert found.status == 200, found.body
    costs = [each["cost_max"] for each in found.json["candidates"]]
    assert costs == [pytest.approx(2.4), pytest.approx(0.4)]
    models = await filming.api("GET", "/v1/models?output_modalities=video")
    [shown] = models.json["data"]
    assert (shown["id"], shown["pricing"]["video_second"]) == (MODEL, "0.1")
    assert shown["supported_parameters"] == ["seconds", "size"]
    document = (await filming.api("GET", "/v1/openapi.json")).json
    assert sorted(document["paths"]["/v1/videos"]) == ["get", "post"]


async def test_c84_videos_are_refused_to_guarded_keys_and_playgrounds() -> None:
    guarded = await open_studio(guardrails={"cards": patterns()})
    refusal = await guarded.ask()
    assert (refusal.status, refusal.error["param"]) == (400, "model"), refusal.body
    filming = await open_studio()
    opened = await filming.api("POST", "/v1/playground", key=filming.secret)
    assert opened.status == 201, opened.body
    refused_key = await filming.ask(key=opened.json["key"])
    assert (refused_key.status, refused_key.error["code"]) == (403, "permission_denied")
    for each in (guarded, filming):
        assert each.home.held_nano_usd == 0
        assert not each.woken


async def test_c84_openais_sdk_makes_videos_unchanged() -> None:
    filming = await open_studio()
    filming.near.variants["thumbnail"] = b"RIFF"
    polling = BatchPolling(filming.worker(), filming.store, filming.home.gateway.clock, at_once=4)
    working = asyncio.create_task(polling.run())
    http = httpx.AsyncClient(transport=httpx.ASGITransport(app=filming.app), follow_redirects=True)
    client = openai.AsyncOpenAI(
        api_key=filming.secret, base_url="http://gateway.test/api/v1", http_client=http
    )
    wanted: dict[str, Any] = {"model": MODEL, "prompt": "A bridge", "seconds": "8"}
    with warnings.catch_warnings():
        # OpenAI has ended its own API, and its SDK says so at each call.
        warnings.simplefilter("ignore", DeprecationWarning)
        created = await client.videos.create(
            **wanted, size="1280x720", input_reference=("a.png", png(4, 4), "image/png")
        )
        assert created.status == "queued"
        video = await client.videos.create_and_poll(**wanted, size="1280x720")
        assert (video.status, video.seconds, video.model) == ("completed", "8", MODEL)
        content = await client.videos.download_content(video.id)
        assert content.read() == MP4
        thumbnail = await client.videos.download_content(video.id, variant="thumbnail")
        assert thumbnail.read() == b"RIFF"
        listed = [it.id async for it in client.videos.list(limit=1)]
        assert listed == [video.id, created.id]
        assert (await client.videos.delete(video.id)).deleted
        with pytest.raises(openai.NotFoundError):
            await client.videos.retrieve(video.id)
    polling.stop()
    with suppress(asyncio.CancelledError):
        await working
    assert filming.home.spent_nano_usd == 2 * EIGHT_SECONDS_NANO_USD
