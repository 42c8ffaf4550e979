"""C55, C81: a guardrail as a model of moderations, from the request to the bill.

Keeps C26, C55, C65, C81.
"""

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house
from tests.pictures import data_url, png
from tests.scripted import Scripted, frame, refuses
from tests.unit.ingress.media_samples import image
from tests.unit.routing.catalogs import model
from tollgate.ingress.formats import MODERATIONS
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

HATED = {"type": "HATE", "confidence": "HIGH", "action": "BLOCKED", "detected": True}
PRICE = {
    "input": Decimal(0),
    "text_units": Decimal("0.40"),
    "image": Decimal("0.00075"),
    "source": "made up",
    "checked": "2026-11-21",
}


def answer(units: int | None, *, images: int = 0, flagged: bool = False) -> list[Any]:
    usage = {"topicPolicyUnits": units, "contentPolicyUnits": units}
    return [
        frame(
            {
                "usage": {} if units is None else usage | {"contentPolicyImageUnits": images},
                "action": "GUARDRAIL_INTERVENED" if flagged else "NONE",
                "outputs": [],
                "assessments": [{"contentPolicy": {"filters": [HATED] if flagged else []}}],
            }
        )
    ]


async def home_of_guardrails(*near: Any, far: Any = None) -> House:
    rows = {
        slug: {"codec": "bedrock", "transport": "bedrock_runtime", "region": "eu-west-1"}
        for slug in ("near", "far")
    }
    offers = [
        {
            "provider": slug,
            "upstream": "support",
            "guardrail": {"id": f"gr{slug}", "version": "1"},
            "price": PRICE,
        }
        for slug in rows
    ]
    section = model(*offers, kind="moderation", context=25_000, input=("text", "image"))
    del section["max_output"]
    return await house(
        near=Scripted(*near),
        far=Scripted(far) if far else None,
        providers=rows,
        models={"acme/guard": section},
        aliases={},
        routes={},
    )


async def judge(home: House, input_: Any) -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    return await request(
        app,
        "POST",
        MODERATIONS.path,
        headers={"authorization": f"Bearer {home.secret}"},
        body=json.dumps({"model": "acme/guard", "input": input_}).encode(),
    )


async def test_c26_c55_c81_each_text_is_judged_and_its_units_are_billed() -> None:
    home = await home_of_guardrails(answer(1), answer(3, flagged=True))
    reply = await judge(home, ["a", "b" * 2_001])
    assert reply.status == 200, reply.body
    assert sorted(each["flagged"] for each in reply.json["results"]) == [False, True]
    record = home.record
    assert (record.usage.text_units, record.usage_source) == (4, "provider")
    assert {line.item: line.cost_nano_usd for line in record.lines} == {"text_unit": 1_600_000}
    assert record.cost_nano_usd == home.spent_nano_usd == 1_600_000
    assert {sent.path for sent in home.near.requests} == {"/guardrail/grnear/version/1/apply"}


async def test_c81_pictures_are_billed_by_the_piece_beside_the_text() -> None:
    home = await home_of_guardrails(answer(1, images=1))
    parts = [{"type": "text", "text": "a"}, image(data_url(png()))]
    assert (await judge(home, parts)).status == 200
    assert {line.item: line.cost_nano_usd for line in home.record.lines} == {
        "image": 750_000,
        "text_unit": 400_000,
    }


@pytest.mark.parametrize(
    ("units", "billed", "source"), [(3, 3, "provider"), (None, 2, "estimated"), (99, 4, "bounded")]
)
async def test_c65_c81_units_are_checked_and_estimated(
    units: int | None, billed: int, source: str
) -> None:
    home = await home_of_guardrails(answer(units))
    # 1,900 characters, and twice as many bytes.
    reply = await judge(home, "é" * 1_900)
    assert reply.status == 200, reply.body
    record = home.record
    assert (record.usage.text_units, record.usage_source) == (billed, source)
    assert record.cost_nano_usd <= record.held_nano_usd


async def test_c55_a_guardrail_that_cannot_be_reached_refuses() -> None:
    home = await home_of_guardrails(refuses(403), far=refuses(503))
    reply = await judge(home, "a")
    assert reply.status >= 500
    assert home.spent_nano_usd == 0
    assert [it.error for it in home.record.attempts][:1] == ["provider_auth"]


async def test_c50_c81_another_guardrail_judges_where_the_first_does_not() -> None:
    home = await home_of_guardrails(refuses(429), far=answer(1))
    assert (await judge(home, "a")).status == 200
    assert home.far.requests[0].path == "/guardrail/grfar/version/1/apply"
