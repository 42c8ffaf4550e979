"""C82: pictures over a connection: forms that are sent, and events as large as a picture."""

import base64
import json
from collections.abc import AsyncGenerator
from email.message import Message
from email.parser import BytesParser
from typing import Any

import pytest

from tests.functional.providers.one_provider import CHAT, OneProvider
from tests.pictures import png
from tests.upstream import FakeUpstream, Script
from tollgate.core.content import Image, InlineMedia
from tollgate.core.errors import UpstreamError
from tollgate.core.events import Ended, Output, Partial, StreamEvent
from tollgate.core.work.images import ImageRequest
from tollgate.providers.ports.base import EVENT_BYTES_MAX, Target, Timeouts
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.work_dialects import ImagesDialect

LARGE = base64.b64encode(png(800, 600, level=0)).decode()
CAT = Image(source=InlineMedia(media_type="image/png", base64=base64.b64encode(png()).decode()))
TARGET = Target(
    provider="acme",
    model="acme/paint",
    upstream_model="p-1",
    dialect=Dialect(images=ImagesDialect(takes=("stream", "mask"), edits="form", images_max=4)),
)


def sse(name: str, **fields: Any) -> bytes:
    event = {"type": f"image_edit.{name}", "b64_json": LARGE, **fields}
    return f"event: image_edit.{name}\ndata: {json.dumps(event)}\n\n".encode()


async def events(provider: OneProvider, work: ImageRequest) -> AsyncGenerator[StreamEvent, None]:
    made = provider.provider(CHAT)
    codec = made.stream_codecs["image"]()
    decoder = codec.decoder(work, TARGET)
    async with made.transport.open(codec.encode(work, TARGET), Timeouts(connect_s=5)) as frames:
        async for together in frames:
            for frame in together:
                for event in decoder.feed(frame):
                    yield event
        for event in decoder.end():
            yield event


def asked(**fields: Any) -> ImageRequest:
    return ImageRequest(model="acme/paint", prompt="two cats", images=(CAT,), stream=True, **fields)


async def test_c82_an_event_may_be_as_large_as_a_picture(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    assert len(LARGE) > EVENT_BYTES_MAX
    upstream.enqueue(Script(chunks=[sse("partial_image"), sse("completed")]))
    kinds = [type(event) async for event in events(provider, asked(partial_images=1))]
    assert [kind for kind in kinds if kind in (Partial, Output, Ended)] == [Partial, Output, Ended]


async def test_c82_an_event_larger_than_any_picture_is_an_error(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    endless = b"data: " + b"x" * (51 * 1024 * 1024)
    upstream.enqueue(Script(chunks=[endless]))
    with pytest.raises(UpstreamError, match="event of more than"):
        [event async for event in events(provider, asked())]


async def test_c82_pictures_to_edit_arrive_as_files(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(Script(chunks=[sse("completed")]))
    [event async for event in events(provider, asked(mask=CAT, count=2))]
    (received,) = upstream.received
    assert received.path == "/images/edits"
    head = f"content-type: {received.headers['content-type']}\r\n\r\n".encode()
    parts = BytesParser().parsebytes(head + received.body).get_payload()
    assert isinstance(parts, list)
    named = [
        (part.get_param("name", header="content-disposition"), part.get_payload(decode=True))
        for part in parts
        if isinstance(part, Message)
    ]
    assert named == [
        ("model", b"p-1"),
        ("prompt", b"two cats"),
        ("stream", b"true"),
        ("partial_images", b"0"),
        ("n", b"2"),
        ("image[]", png()),
        ("mask", png()),
    ]
