"""C81: judgements of texts from the request to the record.

Keeps C41, C66, C81.
"""

import json
from typing import Any

import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house
from tests.scripted import Scripted, frame
from tests.unit.routing.catalogs import model, price, provider
from tollgate.ingress.formats import MODERATIONS
from tollgate.providers.base import Frame
from tollgate.web.chat_app import chat_app
from tollgate.web.cors import WebLimits

JUDGED = {
    "flagged": True,
    "categories": {"violence": True, "self-harm": False},
    "category_scores": {"violence": 0.9, "self-harm": 1e-7},
    "category_applied_input_types": {"violence": ["text"], "self-harm": []},
}
CLEAN = {**JUDGED, "flagged": False}


async def home_of_judges(*near: Any, far: Any = None) -> House:
    rates = {name: rate for name, rate in price("0").items() if name != "output"}
    offers = [{"provider": slug, "upstream": "m-1", "price": rates} for slug in ("near", "far")]
    section = model(*offers, kind="moderation", context=100)
    del section["max_output"]
    return await house(
        near=Scripted(*near),
        far=Scripted(far) if far else None,
        providers={"near": provider(), "far": provider()},
        models={"acme/judge": section},
        aliases={},
        routes={},
    )


async def judge(home: House, **fields: Any) -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    body = {"model": "acme/judge", "input": ["a", {"type": "text", "text": "b"}], **fields}
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
        ({"input": [{"type": "image_url", "image_url": {"url": "x"}}]}, "input[0].type"),
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
