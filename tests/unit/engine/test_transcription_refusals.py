"""C82: requests for transcripts that are refused, with the field at fault.

Keeps C8, C41, C43, C82.
"""

from typing import Any

import pytest

from tests.asgi import request
from tests.cells import cells
from tests.gateways import Always, ShelvedMedia
from tests.scripted import frame
from tests.unit.engine.scribes import SOUND, URL, VERBOSE, home_of_scribes, post, write_down
from tollgate.ingress.formats import TRANSCRIPTIONS
from tollgate.providers.ports.base import FetchedMedia
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits


@pytest.mark.parametrize("content", [None, b"<html>", SOUND[:60]])
async def test_c41_c82_an_address_without_a_recording_is_refused(content: bytes | None) -> None:
    shelf = {} if content is None else {URL: FetchedMedia(content=content)}
    home = await home_of_scribes([frame(VERBOSE)], media=ShelvedMedia(shelf))
    reply = await write_down(home, file=None, url=URL)
    assert (reply.status, reply.error["param"]) == (400, "url")
    assert home.stores.books.records == {}
    assert home.near.requests == []


@cells(
    ("fields", "param"),
    [
        ({"file": None}, "file"),
        ({"file": b""}, "file"),
        ({"file": b"no sound"}, "file"),
        ({"file": SOUND[:100]}, "file"),
        ({"url": URL}, "url"),
        ({"file_id": "file-1"}, "file_id"),
        ({"file": None, "url": URL, "file_id": "file-1"}, "url"),
        ({"file": None, "url": "ftp://files.example/a"}, "url"),
        ({"model": ""}, "model"),
        ({"temperature": "2"}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"language": "e"}, "language"),
        ({"language": "en us"}, "language"),
        ({"response_format": "docx"}, "response_format"),
        ({"timestamp_granularities[]": "letter"}, "timestamp_granularities[0]"),
        ({"timestamp_granularities[]": "word"}, "timestamp_granularities"),
        ({"include[]": "segments"}, "include[0]"),
        ({"include[]": "logprobs", "response_format": "srt"}, "include"),
        ({"chunking_strategy": "never"}, "chunking_strategy"),
        ({"stream": "perhaps"}, "stream"),
        ({"stream": "true", "response_format": "vtt"}, "stream"),
        ({"prompt": "x" * 20_000}, "prompt"),
        ({"provider[sort]": "colour"}, "provider.sort"),
        ({"response_format": "diarized_json"}, "response_format"),
    ],
)
async def test_c41_c82_a_field_at_fault_is_named_and_nothing_is_spent(
    fields: dict[str, Any], param: str
) -> None:
    home = await home_of_scribes([frame(VERBOSE)])
    reply = await write_down(home, **fields)
    assert (reply.status, reply.error["param"]) == (400, param)
    assert home.stores.books.records == {}
    assert home.near.requests == []


async def test_c41_c82_other_bodies_are_refused() -> None:
    home = await home_of_scribes([frame(VERBOSE)])
    for body, type_ in (
        (b"model=ears", "application/x-www-form-urlencoded"),
        (b"", "multipart/form-data"),
        (b"--b\r\n", "multipart/form-data; boundary=b"),
        (SOUND, "audio/wav"),
    ):
        reply = await post(home, TRANSCRIPTIONS.path, body, type_, {})
        assert (reply.status, reply.error["code"]) == (400, "invalid_request")


async def test_c8_c43_c82_a_large_body_names_a_way_that_works() -> None:
    home = await home_of_scribes([frame(VERBOSE)])
    large = await request(
        chat_app(home.front, Always(home.gateway), WebLimits(body_bytes_max=100)),
        "POST",
        TRANSCRIPTIONS.path,
        headers={"authorization": f"Bearer {home.secret}"},
        body=SOUND,
    )
    assert (large.status, "url instead of file" in large.error["message"]) == (413, True)
    reply = await write_down(home, file=SOUND + bytes(26_000_000))
    assert (reply.status, reply.error["param"]) == (413, "file")
