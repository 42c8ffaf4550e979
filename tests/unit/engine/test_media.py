"""C71: URLs become bytes before a provider that does not fetch them is asked.

Keeps C71.
"""

from typing import Any

import pytest

from tests.gateways import House, RecordedReply, ShelvedMedia, house, request_body
from tests.scripted import Scripted, answers, refuses
from tests.unit.ingress.media_samples import MP3, PDF, PNG, UNKNOWN, b64, data_url
from tests.unit.routing.catalogs import endpoint, model, provider
from tollgate.core.clock import Deadline
from tollgate.core.errors import ErrorCode
from tollgate.engine.files import media as limits
from tollgate.engine.gateway import Call
from tollgate.engine.generate import generate
from tollgate.providers.ports.base import FetchedMedia

PICTURE = "https://example.com/a.png"
REPORT = "https://example.com/a.pdf"
SHELF = {
    PICTURE: FetchedMedia(content=PNG, claimed_type="text/html"),
    REPORT: FetchedMedia(content=PDF),
}


MODELS = {
    "acme/large": model(
        endpoint("near", "large-1"),
        endpoint("far", "L"),
        input=("text", "image", "audio", "pdf"),
    )
}


async def seeing(shelf: dict[str, FetchedMedia] | ShelvedMedia, **sections: Any) -> House:
    """A house whose model takes in everything."""
    media = shelf if isinstance(shelf, ShelvedMedia) else ShelvedMedia(shelf)
    return await house(media=media, models=MODELS, **sections)


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def file(url: str) -> dict[str, Any]:
    return {"type": "file", "file": {"file_url": url}}


async def serve(home: House, *parts: dict[str, Any]) -> RecordedReply:
    body = request_body(messages=[{"role": "user", "content": list(parts)}])
    call = Call(
        ingress_format="chat_completions",
        principal=home.principal,
        parsed=home.ingress.parse(body),
        request_id=home.gateway.ids.new_id(),
        deadline=Deadline.within(home.gateway.clock, 600),
    )
    reply = home.reply()
    await generate(home.gateway, call, home.sink(call, reply))
    return reply


def sent(transport: Scripted) -> Any:
    return transport.requests[-1].body["messages"][0]["content"]


async def test_c71_media_behind_urls_reach_a_provider_as_bytes() -> None:
    home = await seeing(SHELF)
    reply = await serve(home, image(PICTURE), file(REPORT))
    assert reply.status == 200
    assert sent(home.near)[0]["image_url"]["url"] == data_url(PNG, "image/png")
    assert sent(home.near)[1]["file"]["file_data"] == data_url(PDF, "application/pdf")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://example.com/b/Q3%20report.csv?x=y.pdf", "Q3 report.csv"),
        ("https://example.com/report", "document.pdf"),
        ("https://example.com/%0Aa.csv", "document.pdf"),
        (f"https://example.com/{'a' * 300}.csv", "document.pdf"),
    ],
)
async def test_c71_a_file_has_the_name_in_its_url(url: str, name: str) -> None:
    home = await seeing({url: FetchedMedia(content=b"a,b", claimed_type="text/csv")})
    await serve(home, file(url))
    assert sent(home.near)[0]["file"]["filename"] == name
    await serve(home, {"type": "file", "file": {"file_url": url, "filename": "own.csv"}})
    assert sent(home.near)[0]["file"]["filename"] == "own.csv"


async def test_c71_a_provider_that_fetches_is_given_the_url() -> None:
    shelf = ShelvedMedia({})
    near = provider(dialect={"fetches_urls": ("image",)})
    home = await seeing(shelf, providers={"near": near, "far": provider()})
    await serve(home, image(PICTURE))
    assert sent(home.near)[0]["image_url"]["url"] == PICTURE
    assert shelf.asked == []


async def test_c71_a_url_is_fetched_once_whatever_attempts_there_are() -> None:
    shelf = ShelvedMedia(SHELF)
    home = await seeing(shelf, near=Scripted(refuses(429)), far=Scripted(answers("Hi")))
    await serve(home, image(PICTURE), image(PICTURE))
    assert shelf.asked == [PICTURE]
    assert len(home.far.requests) == 1


async def test_c71_a_file_is_what_its_bytes_are() -> None:
    shelf = {REPORT: FetchedMedia(content=MP3), PICTURE: FetchedMedia(content=PNG)}
    home = await seeing(shelf)
    await serve(home, file(REPORT), file(PICTURE))
    assert sent(home.near)[0]["input_audio"] == {"data": b64(MP3), "format": "mp3"}
    assert sent(home.near)[1]["image_url"]["url"] == data_url(PNG, "image/png")


@pytest.mark.parametrize("content", [PDF, UNKNOWN])
async def test_c71_what_is_no_picture_is_refused_and_costs_nothing(content: bytes) -> None:
    home = await seeing({PICTURE: FetchedMedia(content=content)})
    reply = await serve(home, image(PICTURE))
    assert reply.status == 400
    assert reply.error["param"] == "messages"
    assert (home.record.outcome, home.record.cost_nano_usd) == ("error", 0)
    assert home.near.requests == []


async def test_c71_what_the_guard_refuses_is_told_as_it_says() -> None:
    home = await seeing(SHELF)
    reply = await serve(home, image("https://inside.example/"), image(PICTURE))
    assert (reply.status, reply.error["message"]) == (400, "It is not there.")


async def test_c71_urls_have_a_number() -> None:
    home = await seeing(SHELF)
    urls = [image(f"{PICTURE}?{n}") for n in range(limits.URLS_MAX + 1)]
    reply = await serve(home, *urls)
    assert reply.error["code"] == ErrorCode.INVALID_REQUEST
