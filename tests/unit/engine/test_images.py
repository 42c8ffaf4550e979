"""C82: pictures from the request to the bill, by the picture and by tokens.

Keeps C26, C41, C66, C71, C82. The providers' answers are synthetic, after their documents.
"""

from decimal import Decimal
from typing import Any

import pytest
from openai.types import (
    ImageEditCompletedEvent,
    ImageEditPartialImageEvent,
    ImagesResponse,
)

from tests.gateways import ShelvedMedia, house
from tests.painters import (
    BY_PICTURE,
    BY_TOKENS,
    DRAWN,
    PICTURE,
    USED,
    draw,
    edit,
    events_of,
    home_of_painters,
    painter,
    upload,
    whole,
)
from tests.pictures import data_url, png, png_text
from tests.scripted import Scripted, frame, refuses
from tests.unit.routing.catalogs import provider
from tollgate.ingress.formats import IMAGE_EDITS, IMAGE_GENERATIONS
from tollgate.providers.ports.base import FetchedMedia


async def test_c26_c66_c82_pictures_are_billed_and_recorded_as_a_generation_is() -> None:
    home = await home_of_painters([whole(2, background="opaque", quality="high")])
    reply = await draw(home, n=2, size="1024x1024", quality="high", user="u-1")
    assert reply.status == 200
    record = home.record
    assert reply.json == {
        "created": record.created_s,
        "data": [{"b64_json": DRAWN}] * 2,
        "background": "opaque",
        "output_format": "png",
        "quality": "high",
        "size": "64x32",
        "usage": {
            "input_tokens": 0,
            "input_tokens_details": {"text_tokens": 0, "image_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"text_tokens": 0, "image_tokens": 0},
            "total_tokens": 0,
            "cost": 0.04,
        },
        "credits_used": 0.04,
        "model_used": "acme/paint",
        "provider_used": "near",
    }
    ImagesResponse.model_validate(reply.json, strict=True)
    assert (record.trace.kind, record.ingress_format) == ("image", IMAGE_GENERATIONS.name)
    assert (record.usage.images, record.usage_source) == (2, "provider")
    assert record.cost_nano_usd == home.spent_nano_usd == 40_000_000
    assert record.held_nano_usd >= record.cost_nano_usd
    [sent] = home.near.requests
    assert (sent.path, sent.body) == (
        "/images/generations",
        {
            "model": "p-1",
            "prompt": "two cats",
            "n": 2,
            "size": "1024x1024",
            "quality": "high",
            "response_format": "b64_json",
            "user": "u-1",
        },
    )


async def test_c82_tokens_of_texts_and_pictures_have_their_own_rates() -> None:
    home = await home_of_painters([whole(usage=USED)], rates=BY_TOKENS, dialect={"tokens": True})
    reply = await edit(home)
    lines = {line.item: (line.quantity, line.cost_nano_usd) for line in home.record.lines}
    assert lines == {
        "input": (10, 50_000),
        "input_image": (20, 160_000),
        "output_image": (400, 12_000_000),
    }
    assert reply.json["usage"] == {
        "input_tokens": 30,
        "input_tokens_details": {"text_tokens": 10, "image_tokens": 20},
        "output_tokens": 400,
        "output_tokens_details": {"text_tokens": 0, "image_tokens": 400},
        "total_tokens": 430,
        "cost": 0.01221,
    }


@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": -1, "output_tokens": True}, []])
async def test_c82_tokens_that_no_provider_reports_are_estimated(usage: Any) -> None:
    home = await home_of_painters([whole(usage=usage)], rates=BY_TOKENS, dialect={"tokens": True})
    assert (await draw(home)).status == 200
    record = home.record
    assert record.usage_source == "estimated"
    assert 0 < record.cost_nano_usd <= record.held_nano_usd


async def test_c82_tokens_above_the_bound_are_cut_to_it() -> None:
    lied = {"input_tokens": 900_000_000, "output_tokens": 900_000_000}
    home = await home_of_painters([whole(usage=lied)], rates=BY_TOKENS, dialect={"tokens": True})
    assert (await draw(home, n=1)).status == 200
    record = home.record
    assert (record.usage_source, record.usage.output_tokens) == ("bounded", 16_384)
    assert record.cost_nano_usd <= record.held_nano_usd


@pytest.mark.parametrize(
    ("asked", "nano_usd"),
    [
        ({}, 20_000_000),
        ({"quality": "high"}, 80_000_000),
        ({"quality": "auto", "size": "auto"}, 20_000_000),
        ({"quality": "high", "size": "1024x1536"}, 120_000_000),
        ({"size": "1024x1536"}, 20_000_000),
    ],
)
async def test_c65_c82_a_picture_has_the_price_of_its_size_and_quality(
    asked: dict[str, str], nano_usd: int
) -> None:
    high = {"when": {"image_quality": "high"}, "price": {"image": Decimal("0.08")}}
    large = {
        "when": {"image_quality": "high", "image_over": "1024x1024"},
        "price": {"image": Decimal("0.12")},
    }
    home = await home_of_painters([whole()], overrides=(high, large))
    await draw(home, **asked)
    assert home.record.cost_nano_usd == nano_usd


async def test_c82_more_pictures_than_a_provider_makes_at_once_are_batches_of_one_bill() -> None:
    home = await home_of_painters([whole(4)], [whole(4)], [whole(2)])
    reply = await draw(home, n=10)
    assert len(reply.json["data"]) == 10
    assert sorted(sent.body["n"] for sent in home.near.requests) == [2, 4, 4]
    record = home.record
    assert (record.usage.images, record.cost_nano_usd) == (10, 200_000_000)


async def test_c82_fewer_pictures_are_billed_as_they_are_delivered() -> None:
    home = await home_of_painters([whole(1)])
    assert len((await draw(home, n=3)).json["data"]) == 1
    assert home.record.cost_nano_usd == 20_000_000


@pytest.mark.parametrize(
    "data",
    [
        [{"b64_json": DRAWN}] * 2,
        [{"b64_json": "no base64!"}],
        [{"b64_json": data_url(b"words", "text/plain")}],
        [{"b64_json": png_text()[:40]}],
        [{"b64_json": 1}],
        [{"url": "https://pictures.example/1.png"}],
        "no",
    ],
)
async def test_c82_an_answer_without_the_picture_is_served_elsewhere(data: Any) -> None:
    home = await home_of_painters([frame({"data": data})], far=[whole()])
    reply = await draw(home, response_format="b64_json")
    assert reply.json["provider_used"] == "far"
    assert home.record.attempts[0].error == "provider_unavailable"
    assert home.record.cost_nano_usd == 20_000_000


async def test_c82_urls_are_passed_on_where_the_provider_has_them() -> None:
    address = "https://pictures.example/1.png"
    home = await home_of_painters([frame({"data": [{"url": address}]})])
    reply = await draw(home, response_format="url")
    assert reply.json["data"] == [{"url": address}]
    assert home.near.requests[0].body["response_format"] == "url"


async def test_c82_a_data_url_is_content_and_no_url() -> None:
    home = await home_of_painters([frame({"data": [{"url": data_url(png(64, 32))}]})])
    assert (await draw(home)).json["data"] == [{"b64_json": DRAWN}]


async def test_c82_urls_are_refused_where_the_provider_has_none() -> None:
    home = await home_of_painters([whole()], dialect={"urls": False})
    reply = await draw(home, response_format="url")
    assert (reply.status, reply.error["param"]) == (400, "response_format")
    assert home.near.requests == []


async def test_c13_c82_options_that_a_server_does_not_take_are_named() -> None:
    home = await home_of_painters([whole()], dialect={"takes": ("quality",), "size": "none"})
    reply = await draw(home, quality="low", style="vivid", moderation="low", size="64x64", frames=3)
    named = reply.headers["x-tollgate-adapted"].split(", ")
    assert sorted(named) == ["frames", "moderation", "size", "style"]
    assert set(home.near.requests[0].body) == {"model", "prompt", "n", "quality", "response_format"}


async def test_c82_a_stream_has_previews_and_the_picture_with_its_price() -> None:
    home = await home_of_painters(
        [
            frame(
                {
                    "type": "image_generation.partial_image",
                    "b64_json": png_text(8, 8),
                    "partial_image_index": 1,
                }
            ),
            frame(
                {
                    "type": "image_generation.completed",
                    "b64_json": DRAWN,
                    "quality": "low",
                    "usage": USED,
                }
            ),
        ],
        rates=BY_TOKENS,
        dialect={"tokens": True},
    )
    reply = await edit(home, stream=True, partial_images=2)
    preview, done = events_of(reply)
    ImageEditPartialImageEvent.model_validate(preview, strict=True)
    ImageEditCompletedEvent.model_validate(done, strict=True)
    assert preview == {
        "type": "image_edit.partial_image",
        "b64_json": png_text(8, 8),
        "created_at": home.record.created_s,
        "background": "auto",
        "output_format": "png",
        "quality": "auto",
        "size": "8x8",
        "partial_image_index": 1,
    }
    assert (done["type"], done["b64_json"]) == ("image_edit.completed", DRAWN)
    assert (done["quality"], done["size"], done["usage"]["cost"]) == ("low", "64x32", 0.01221)
    assert reply.body.startswith(b"event: image_edit.partial_image\ndata: ")
    form = {part.name: part.content for part in home.near.requests[0].form}
    assert (form["stream"], form["partial_images"]) == (b"true", b"2")


async def test_c82_a_whole_answer_streams_as_completed_pictures() -> None:
    for dialect in ({}, {"takes": ()}, {"images_max": 1}):
        home = await home_of_painters([whole(1)], dialect=dialect)
        reply = await draw(home, stream=True, n=2 if "images_max" in dialect else 1)
        kinds = [event["type"] for event in events_of(reply)]
        assert kinds == ["image_generation.completed"] * (2 if "images_max" in dialect else 1)
        assert home.record.cost_nano_usd == 20_000_000 * len(kinds)


async def test_c33_c82_a_stream_that_breaks_after_a_preview_ends_with_an_error() -> None:
    preview = {"type": "image_generation.partial_image", "b64_json": DRAWN}
    home = await home_of_painters([frame(preview)])
    reply = await draw(home, stream=True, partial_images=1)
    assert [event["type"] for event in events_of(reply)][1:] == ["error"]
    assert b"completed" not in reply.body
    assert (home.record.outcome, home.spent_nano_usd) == ("error", 0)


async def test_c33_c82_an_error_in_the_stream_is_served_elsewhere_before_a_preview() -> None:
    broken = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}
    home = await home_of_painters([frame(broken)], far=[whole()])
    reply = await draw(home, stream=True)
    assert events_of(reply)[-1]["provider_used"] == "far"
    assert home.record.attempts[0].error == "provider_rate_limit"


async def test_c82_pictures_to_edit_are_sent_as_a_form() -> None:
    home = await home_of_painters([whole()])
    reply = await edit(home, images=[PICTURE] * 2, mask=PICTURE, quality="low")
    assert reply.status == 200
    [sent] = home.near.requests
    assert (sent.path, sent.body) == ("/images/edits", {})
    fields = {part.name: part.content for part in sent.form if part.file_name is None}
    assert fields == {
        "model": b"p-1",
        "prompt": b"two cats",
        "quality": b"low",
        "n": b"1",
        "response_format": b"b64_json",
    }
    files = [(part.name, part.file_name, part.media_type, part.content) for part in sent.form[5:]]
    assert files == [
        ("image[]", "picture.png", "image/png", png()),
        ("image[]", "picture.png", "image/png", png()),
        ("mask", "picture.png", "image/png", png()),
    ]
    assert home.record.ingress_format == IMAGE_EDITS.name


async def test_c71_c82_a_picture_is_fetched_for_a_form_also_where_a_chat_passes_urls_on() -> None:
    url = "https://pictures.example/cat.png"
    media = ShelvedMedia({url: FetchedMedia(content=png())})
    home = await home_of_painters(
        [whole()], media=media, dialect={"takes": ()}, fetches_urls=("image",)
    )
    assert (await edit(home, images=[{"image_url": url}])).status == 200
    assert home.near.requests[0].form[-1].content == png()


async def test_c82_pictures_come_in_a_form_too() -> None:
    home = await home_of_painters([whole(2)])
    reply = await upload(
        home,
        ("image[]", png(8, 8)),
        ("image[]", png()),
        ("mask", png()),
        n="2",
        stream="false",
        quality="auto",
    )
    assert (reply.status, len(reply.json["data"])) == (200, 2)
    sent = home.near.requests[0].form
    assert [part.content for part in sent if part.file_name] == [png(8, 8), png(), png()]
    assert [part.content for part in sent if part.name == "n"] == [b"2"]


async def test_c71_c82_a_picture_behind_a_url_is_fetched_once_and_checked() -> None:
    url = "https://pictures.example/cat.png"
    media = ShelvedMedia({url: FetchedMedia(content=png())})
    home = await home_of_painters(refuses(503), far=[whole()], media=media)
    reply = await edit(home, images=[{"image_url": url}])
    assert reply.status == 200
    assert media.asked == [url]
    assert [part.content for part in home.far.requests[0].form if part.file_name] == [png()]


@pytest.mark.parametrize(
    "content", [b"words", b"%PDF-1.7", png()[:30], png(stated=(60_000, 60_000))]
)
async def test_c71_c82_what_is_no_picture_behind_a_url_is_refused(content: bytes) -> None:
    url = "https://pictures.example/cat.png"
    media = ShelvedMedia({url: FetchedMedia(content=content, claimed_type="image/png")})
    home = await home_of_painters([whole()], media=media)
    reply = await edit(home, images=[{"image_url": url}])
    assert (reply.status, reply.error["param"]) == (400, "images")
    assert (home.near.requests, home.spent_nano_usd) == ([], 0)


async def test_c41_c82_a_mask_behind_a_url_is_a_png_picture_too() -> None:
    url = "https://pictures.example/mask"
    media = ShelvedMedia({url: FetchedMedia(content=b"GIF89a" + b"\x01\0" * 5, claimed_type=None)})
    home = await home_of_painters([whole()], media=media)
    reply = await edit(home, mask={"image_url": url})
    assert (reply.status, reply.error["param"]) == (400, "mask.image_url")
    assert (home.near.requests, home.spent_nano_usd) == ([], 0)


async def test_c82_a_model_that_takes_no_pictures_edits_none() -> None:
    section = painter(BY_PICTURE) | {"input": ("text",)}
    home = await house(
        near=Scripted([whole()]),
        providers={"near": provider(), "far": provider()},
        models={"acme/paint": section},
        aliases={},
        routes={},
    )
    reply = await edit(home)
    assert (reply.status, reply.error["code"]) == (400, "image_not_supported_by_model")
    assert reply.error["param"] == "images"


async def test_c82_an_edit_of_one_area_is_refused_where_there_are_no_masks() -> None:
    home = await home_of_painters([whole()], dialect={"takes": ()})
    reply = await edit(home, mask=PICTURE)
    assert (reply.status, reply.error["param"]) == (400, "mask")


async def test_c82_edits_stream_under_their_own_name() -> None:
    home = await home_of_painters([whole()])
    assert [event["type"] for event in events_of(await edit(home, stream=True))] == [
        "image_edit.completed"
    ]
