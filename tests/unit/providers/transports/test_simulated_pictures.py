"""The simulator's pictures: real, of the size that is requested, and the same each time."""

import json
import struct
import zlib
from base64 import b64decode
from typing import Any

import pytest

from tollgate.core.clock import SystemClock
from tollgate.providers.ports.base import Timeouts, UpstreamRefused, WireRequest
from tollgate.providers.simulator.simulator import Simulator


async def drawn(*, streamed: bool = False, **fields: Any) -> list[Any]:
    body = {"model": "image", "prompt": "two cats", "size": "40x24", **fields}
    wire = WireRequest(
        path="/images/generations", body=body, reply_bytes_max=None if streamed else 1
    )
    async with Simulator(SystemClock()).open(wire, Timeouts()) as frames:
        return [json.loads(frame.data) async for together in frames for frame in together]


def pixels_of(picture: str) -> tuple[tuple[int, int], bytes]:
    """The size of a PNG and its unpacked rows; each checksum must be right."""
    content, place, packed = b64decode(picture), 8, b""
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    while place < len(content):
        [length] = struct.unpack(">I", content[place : place + 4])
        chunk = content[place + 4 : place + 8 + length]
        [checksum] = struct.unpack(">I", content[place + 8 + length : place + 12 + length])
        assert zlib.crc32(chunk) == checksum
        packed += chunk[4:] if chunk[:4] == b"IDAT" else b""
        place += 12 + length
    width, height = struct.unpack(">II", content[16:24])
    return (width, height), zlib.decompress(packed)


async def test_a_picture_is_a_png_of_its_size_and_of_its_words() -> None:
    [whole] = await drawn(n=2)
    first, second = (item["b64_json"] for item in whole["data"])
    size, rows = pixels_of(first)
    assert (size, len(rows)) == ((40, 24), 24 * (1 + 3 * 40))
    assert first != second
    assert [whole] == await drawn(n=2)
    assert [whole] != await drawn(n=2, prompt="two dogs")
    assert whole["usage"]["output_tokens_details"]["image_tokens"] == 2


@pytest.mark.parametrize("fields", [{"quality": "hd"}, {"quality": "xhigh"}, {"size": "10x99999"}])
async def test_every_quality_and_size_that_the_gateway_takes_is_drawn(
    fields: dict[str, Any],
) -> None:
    [whole] = await drawn(**fields)
    assert pixels_of(whole["data"][0]["b64_json"])[0] in ((40, 24), (10, 4_096))


async def test_a_stream_has_previews_then_pictures() -> None:
    events = await drawn(streamed=True, partial_images=2, n=2)
    assert [event["type"].rpartition(".")[2] for event in events] == [
        "partial_image",
        "partial_image",
        "completed",
        "completed",
    ]
    [whole] = await drawn(n=2)
    assert [event["b64_json"] for event in events[2:]] == [
        item["b64_json"] for item in whole["data"]
    ]
    cut = await drawn(streamed=True, partial_images=2, model="image:drop-after-1")
    assert len(cut) == 1


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"prompt": "do harm"}, 400),
        ({"size": "big"}, 400),
        ({"n": 11}, 400),
        ({"model": "paint"}, 404),
        ({"model": "image:odd"}, 404),
        ({"model": "image:529"}, 529),
    ],
)
async def test_what_it_does_not_draw_is_refused(fields: dict[str, Any], status: int) -> None:
    with pytest.raises(UpstreamRefused) as refused:
        await drawn(**fields)
    assert refused.value.status == status
