"""Stored responses through the deployed path, by the official SDK, in a bucket.

Keeps C69, C80.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import openai
import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from tests.buckets import create_bucket
from tests.deployment import PATIENCE_S, Deployment, Key, Workspace, deployed
from tests.ministack import ministack_command, running_ministack
from tests.upstream.speakers import SPEAKERS, Speaker

pytestmark = pytest.mark.asyncio(loop_scope="module")
each_speaker = pytest.mark.parametrize("speaker", SPEAKERS, ids=lambda speaker: speaker.name)

BUCKET: Final = "tollgate-objects"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def storing(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Deployment]:
    """A deployment with a bucket."""
    if ministack_command() is None:
        pytest.skip("ministack is not installed: run `make .tools/ministack/stamp`")
    folder = tmp_path_factory.mktemp("storing")
    with running_ministack(folder, services="dynamodb,s3") as url:
        create_bucket(url, BUCKET)
        async with deployed(url, folder, bucket=BUCKET) as running:
            yield running


@pytest_asyncio.fixture(loop_scope="module")
async def tenant(storing: Deployment) -> AsyncIterator[Workspace]:
    """A workspace; afterwards no script is unplayed, no rule broken, no call to AWS refused."""
    for upstream in storing.upstreams.each:
        upstream.reset()
    yield await storing.workspace()
    assert [upstream.unplayed for upstream in storing.upstreams.each] == [0] * 4
    assert storing.emulator.take_violations() == []
    assert storing.proxy.take_refusals() == []


async def client_of(running: Deployment, workspace: Workspace) -> AsyncOpenAI:
    """The SDK with a key whose responses are stored."""
    settings = {"name": "stores", "response_days": 7}
    made = await running.ask("POST", "/v1/keys", workspace.management, body=settings)
    return running.client(Key(id=made.json["data"]["id"], secret=made.json["key"]))


@each_speaker
async def test_c80_a_response_is_readable_once_its_last_event_has_come(
    storing: Deployment, tenant: Workspace, speaker: Speaker
) -> None:
    upstream = storing.upstreams.of(speaker)
    upstream.enqueue(*(speaker.script(speaker.text([word])) for word in ("One", "Two", "Three")))
    async with await client_of(storing, tenant) as client, asyncio.timeout(PATIENCE_S):
        async with client.responses.stream(model=speaker.model, input="Count") as stream:
            async for event in stream:
                if event.type == "response.completed":
                    # The stream is not closed yet.
                    shown = await client.responses.retrieve(event.response.id)
            first = await stream.get_final_response()
        assert shown.output_text == first.output_text == "One"
        assert (shown.id, shown.usage) == (first.id, first.usage)
        second = await client.responses.create(
            model=speaker.model, input="On", previous_response_id=first.id
        )
        third = await client.responses.create(
            model=speaker.model, input="On", previous_response_id=second.id, store=False
        )
    assert (second.output_text, third.output_text) == ("Two", "Three")
    assert third.previous_response_id == second.id
    last = upstream.received[-1].body
    places = [last.index(word) for word in (b"Count", b"One", b"On", b"Two")]
    assert places == sorted(places)


async def test_c80_the_sdk_lists_deletes_and_cannot_cancel(
    storing: Deployment, tenant: Workspace
) -> None:
    speaker = SPEAKERS[0]
    storing.upstreams.of(speaker).enqueue(speaker.script(speaker.text(["One"])))
    stranger = await storing.workspace()
    async with (
        await client_of(storing, tenant) as client,
        await client_of(storing, stranger) as other,
    ):
        asked: Any = [{"role": "user", "content": it} for it in ("a", "b", "c")]
        made = await client.responses.create(model=speaker.model, input=asked)
        items: list[Any] = [
            item async for item in client.responses.input_items.list(made.id, limit=2, order="asc")
        ]
        assert [item.content[0].text for item in items] == ["a", "b", "c"]
        with pytest.raises(openai.BadRequestError, match="synchronous"):
            await client.responses.cancel(made.id)
        with pytest.raises(openai.BadRequestError) as unknown:
            await other.responses.create(
                model=speaker.model, input="", previous_response_id=made.id
            )
        assert unknown.value.code == "previous_response_not_found"
        for refused in (other.responses.retrieve(made.id), other.responses.delete(made.id)):
            with pytest.raises(openai.NotFoundError):
                await refused
        await client.responses.delete(made.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(made.id)
    audit = await storing.ask("GET", f"/v1/audit?target={made.id}", tenant.management)
    assert [entry["action"] for entry in audit.json["data"]] == ["response.delete"]


async def test_c80_what_the_platform_could_not_show_is_not_said_to_be_stored(
    storing: Deployment, tenant: Workspace
) -> None:
    speaker = SPEAKERS[0]
    # In a reply of Lambda's a quotation mark of the text has four characters.
    words = ['"' * 100_000] * 16
    storing.upstreams.of(speaker).enqueue(speaker.script(speaker.text(words)))
    async with await client_of(storing, tenant) as client, asyncio.timeout(PATIENCE_S):
        async with client.responses.stream(model=speaker.model, input="Quote") as stream:
            made = await stream.get_final_response()
        assert made.output_text == "".join(words)
        assert (made.to_dict()["store"], made.to_dict()["adapted"]) == (False, ["store"])
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(made.id)
