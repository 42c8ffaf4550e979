"""C81: judgements of texts from the request to the record.

Keeps C41, C66, C71, C81.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always, House, ShelvedMedia, house
from tests.pictures import png
from tests.scripted import Scripted, frame, refuses
from tests.unit.ingress.media_samples import PDF, data_url, image
from tests.unit.routing.catalogs import model, price, provider
from tollgate.core.work.pictures import READ_TOKENS_MAX
from tollgate.ingress.formats import MODERATIONS
from tollgate.providers.ports.base import FetchedMedia, Frame
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

JUDGED = {
    "flagged": True,
    "categories": {"violence": True, "self-harm": False},
    "category_scores": {"violence": 0.9, "self-harm": 1e-7},
    "category_applied_input_types": {"violence": ["text"], "self-harm": []},
}
CLEAN = {**JUDGED, "flagged": False}
PICTURE = "https://example.com/a.png"
PNG = png()


async def home_of_judges(
    *near: Any, far: Any = None, of_model: Mapping[str, Any] = MappingProxyType({}), **sections: Any
) -> House:
    rates = {name: rate for name, rate in price("0").items() if name != "output"}
    offers = [{"provider": slug, "upstream": "m-1", "price": rates} for slug in ("near", "far")]
    section = model(*offers, kind="moderation", context=100, input=("text", "image"))
    section |= of_model
    del section["max_output"]
    return await house(
        near=Scripted(*near),
        far=Scripted(far) if far else None,
        **{"providers": {"near": provider(), "far": provider()}, **sections},
        models={"acme/judge": section},
        aliases={},
        routes={},
    )


async def judge(home: House, **fields: Any) -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    body = {"model": "acme/judge", "input": ["a", "b"], **fields}
    return await request(
        app,
        "POST",
        MODERATIONS.path,
        headers={"authorization": f"Bearer {home.secret}"},
        body=json.dumps(body).encode(),
    )


async def test_c66_c81_judgements_are_passed_on_and_recorded() -> None:
    home = await home_of_judges([frame({"id": "m-7", "model": "m", "results": [JUDGED, CLEAN]})])
    reply = await judge(home)
    record = home.record
    assert reply.json == {
        "id": f"modr-{record.id}",
        "model": "acme/judge",
        "results": [JUDGED, CLEAN],
    }
    assert (record.trace.kind, record.upstream_id) == ("moderation", "m-7")
    assert (record.cost_nano_usd, record.usage_source) == (0, "estimated")
    [sent] = home.near.requests
    assert (sent.path, sent.body) == ("/moderations", {"model": "m-1", "input": ["a", "b"]})


async def test_c81_parts_are_judged_together() -> None:
    home = await home_of_judges([frame({"results": [JUDGED]})])
    picture = data_url(PNG, "image/png")
    parts = [{"type": "text", "text": "a"}, image(picture), image(picture)]
    reply = await judge(home, input=parts)
    assert (reply.status, reply.json["results"]) == (200, [JUDGED])
    [sent] = home.near.requests
    assert sent.body["input"] == parts
    trace = home.record.trace
    assert (trace.inputs, trace.modalities) == (1, ("image", "text"))
    # A provider that charges for pictures does so by tokens.
    assert trace.input_tokens_max >= 2 * READ_TOKENS_MAX


async def test_c81_parts_of_text_have_one_judgement_too() -> None:
    home = await home_of_judges([frame({"results": [JUDGED]})])
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert (await judge(home, input=parts)).json["results"] == [JUDGED]
    assert home.near.requests[0].body["input"] == parts


async def test_c71_c81_a_picture_behind_a_url_is_fetched_where_the_provider_does_not() -> None:
    shelf = ShelvedMedia({PICTURE: FetchedMedia(content=PNG)})
    providers = {"near": provider(), "far": provider(dialect={"fetches_urls": ("image",)})}
    judged = [frame({"results": [JUDGED]})]
    home = await home_of_judges(refuses(529), far=judged, media=shelf, providers=providers)
    assert (await judge(home, input=[image(PICTURE)])).status == 200
    assert home.near.requests[0].body["input"] == [image(data_url(PNG, "image/png"))]
    assert home.far.requests[0].body["input"] == [image(PICTURE)]
    assert shelf.asked == [PICTURE]


async def test_c71_c81_content_that_is_no_picture_is_refused_and_costs_nothing() -> None:
    home = await home_of_judges(media=ShelvedMedia({PICTURE: FetchedMedia(content=PDF)}))
    reply = await judge(home, input=[image(PICTURE)])
    assert (reply.status, reply.error["param"]) == (400, "input")
    assert (home.record.cost_nano_usd, home.near.requests) == (0, [])


async def test_c41_c81_a_model_of_texts_alone_refuses_pictures() -> None:
    home = await home_of_judges(of_model={"input": ("text",)})
    reply = await judge(home, input=[image(PICTURE)])
    assert (reply.status, reply.error["code"]) == (400, "image_not_supported_by_model")


async def test_c81_fields_of_parts_that_have_no_effect_are_named() -> None:
    home = await home_of_judges([frame({"results": [JUDGED]})])
    picture = image(data_url(PNG), detail="low") | {"id": 7}
    reply = await judge(home, input=[picture])
    assert reply.headers["x-tollgate-adapted"] == "input[0].id, input[0].image_url.detail"


async def test_c81_a_judgement_that_no_parser_reads_is_served_elsewhere() -> None:
    spoilt = json.dumps(CLEAN).encode()[:-1] + b', "note": "\xff"}'
    good = [frame({"results": [CLEAN, CLEAN]})]
    home = await home_of_judges([Frame(data=b'{"results": [%b, %b]}' % (spoilt, spoilt))], far=good)
    assert (await judge(home)).json["results"] == [CLEAN, CLEAN]
    assert home.record.attempts[0].error == "provider_unavailable"


@pytest.mark.parametrize(
    "results",
    [[JUDGED], [JUDGED] * 3, [JUDGED, {}], [JUDGED, {**CLEAN, "flagged": 1}], None, [1, 2]],
)
async def test_c81_an_answer_without_a_judgement_for_each_text_is_served_elsewhere(
    results: Any,
) -> None:
    good = [frame({"results": [CLEAN, CLEAN]})]
    home = await home_of_judges([frame({"results": results})], far=good)
    assert (await judge(home)).json["results"] == [CLEAN, CLEAN]
    assert home.record.attempts[0].error == "provider_unavailable"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": ["a"] * 129}, "input"),
        ({"input": ["a", 1]}, "input[1]"),
        ({"input": ["a", {"type": "text", "text": "b"}]}, "input[1]"),
        ({"input": [{"type": "text", "text": ""}]}, "input[0].text"),
        ({"input": [{"type": "image", "url": "x"}]}, "input[0].type"),
        ({"input": [image("x")]}, "input[0].image_url.url"),
        ({"input": [image(data_url(PDF))]}, "input[0].image_url.url"),
        ({"input": [image(data_url(png(stated=(99_999, 99_999))))]}, "input[0].image_url.url"),
        ({"input": [{"type": "image_url", "image_url": "x"}]}, "input[0].image_url"),
        ({"input": [image(PICTURE)] * 17}, "input"),
        ({"input": None}, "input"),
        ({"model": None}, "model"),
    ],
)
async def test_c41_c81_bad_input_names_its_field_and_spends_nothing(
    fields: dict[str, Any], param: str
) -> None:
    home = await home_of_judges([frame({"results": []})])
    reply = await judge(home, **fields)
    assert (reply.status, reply.error["param"]) == (400, param)
    assert home.stores.books.records == {}
