"""C82: pictures that a provider's filter withholds: fewer, or a refusal that costs nothing."""

import json
from typing import Any

import pytest

from tests.painters import DRAWN, draw, home_of_painters
from tests.scripted import frame
from tollgate.providers.ports.base import UpstreamRefused


@pytest.mark.parametrize(
    "body",
    [{"data": []}, {"data": None}, {}, {"data": [{}]}, {"data": [{"b64_json": "", "url": None}]}],
)
async def test_c82_a_filter_that_withholds_every_picture_is_an_error_that_costs_nothing(
    body: Any,
) -> None:
    home = await home_of_painters([frame(body)])
    reply = await draw(home)
    assert (reply.status, reply.error["code"]) == (400, "content_filter")
    assert home.spent_nano_usd == 0


async def test_c82_a_picture_without_content_is_one_that_was_withheld() -> None:
    data = [{"b64_json": DRAWN}, {"b64_json": None, "url": ""}]
    home = await home_of_painters([frame({"data": data})])
    reply = await draw(home, n=2)
    assert reply.json["data"] == [{"b64_json": DRAWN}]
    assert home.record.cost_nano_usd == 20_000_000


@pytest.mark.parametrize("streamed", [False, True])
async def test_c82_what_openai_blocks_is_a_filters_refusal_and_costs_nothing(
    streamed: bool,
) -> None:
    error = {
        "type": "image_generation_user_error",
        "code": "moderation_blocked",
        "message": "Your request was rejected by the safety system.",
    }
    refused = UpstreamRefused(400, {}, json.dumps({"error": error}).encode())
    home = await home_of_painters(
        [frame({"type": "error", "error": error})] if streamed else [refused]
    )
    reply = await draw(home, stream=streamed)
    assert (reply.status, reply.error["code"]) == (400, "content_filter")
    assert (len(home.near.requests), home.spent_nano_usd) == (1, 0)


async def test_c82_an_error_in_the_place_of_pictures_is_no_filter() -> None:
    broken = {"error": {"message": "no GPU is free", "code": "overloaded"}}
    home = await home_of_painters([frame(broken)])
    reply = await draw(home, provider={"only": ["near"]})
    assert (reply.status, reply.error["code"]) == (502, "provider_unavailable")
