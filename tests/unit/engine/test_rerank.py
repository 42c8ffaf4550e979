"""C81: ranking of documents from the request to the bill, by tokens or by units of search.

Keeps C26, C41, C66, C81.
"""

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house
from tests.scripted import Scripted, frame, refuses
from tests.unit.routing.catalogs import model, price, provider
from tollgate.core.work.reranking import RerankRequest
from tollgate.ingress.formats import RERANK
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

RANKED = {
    "results": [
        {"index": 2, "relevance_score": 0.25, "document": {"text": "not ours"}},
        {"index": 0, "relevance_score": 0.75},
    ]
}
TOKENS = {**RANKED, "usage": {"total_tokens": 9}}


def ranker(slug: str, **rates: str) -> dict[str, object]:
    kept = {name: rate for name, rate in price("100").items() if name != "output"}
    offer = {"provider": slug, "upstream": "r-1", "price": kept | _decimals(rates)}
    section = model(offer, kind="rerank", context=100)
    del section["max_output"]
    return section


def _decimals(rates: dict[str, str]) -> dict[str, object]:
    return {name: Decimal(rate) for name, rate in rates.items()}


async def home_of_rankers(
    *near: Any, far: Any = None, dialect: dict[str, Any] | None = None, **rates: str
) -> House:
    return await house(
        near=Scripted(*near),
        far=Scripted(far) if far else None,
        providers={"near": provider(dialect=dialect or {}), "far": provider()},
        models={"acme/rank": ranker("near", **rates), "acme/spare": ranker("far", **rates)},
        aliases={},
        routes={"ranks": {"description": "Two", "try": ("acme/rank", "acme/spare")}},
    )


async def rank(home: House, *, path: str = RERANK.path, **fields: Any) -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    body = {"model": "ranks", "query": "q", "documents": ["a", {"text": "b"}, "c"], "top_n": 2}
    return await request(
        app,
        "POST",
        path,
        headers={"authorization": f"Bearer {home.secret}"},
        body=json.dumps(body | fields).encode(),
    )


async def test_c26_c66_c81_a_ranking_is_billed_and_recorded_as_a_generation_is() -> None:
    home = await home_of_rankers([frame(TOKENS)])
    reply = await rank(home, return_documents=True)
    assert reply.status == 200
    record = home.record
    assert reply.json == {
        "id": f"gen-{record.id}",
        "model": "acme/rank",
        "results": [
            {"index": 0, "relevance_score": 0.75, "document": {"text": "a"}},
            {"index": 2, "relevance_score": 0.25, "document": {"text": "c"}},
        ],
        "meta": {"billed_units": {"search_units": 0}},
        "usage": {"total_tokens": 9},
    }
    assert (record.trace.kind, record.ingress_format) == ("rerank", RERANK.name)
    assert record.cost_nano_usd == home.spent_nano_usd == 900_000
    [sent] = home.near.requests
    assert sent.path == "/rerank"
    assert sent.body == {"model": "r-1", "query": "q", "documents": ["a", "b", "c"], "top_n": 2}


@pytest.mark.parametrize(
    ("units", "billed", "source"), [(1, 1, "provider"), (None, 1, "estimated"), (99, 1, "bounded")]
)
async def test_c81_units_of_search_are_billed_checked_and_estimated(
    units: int | None, billed: int, source: str
) -> None:
    meta = {} if units is None else {"meta": {"billed_units": {"search_units": units}}}
    home = await home_of_rankers([frame({**RANKED, **meta})], input="0", search="0.002")
    assert (await rank(home)).json["meta"]["billed_units"]["search_units"] == billed
    record = home.record
    assert (record.usage.search_units, record.usage_source) == (billed, source)
    bill = {line.item: line.cost_nano_usd for line in record.lines}
    assert bill.pop("search") == 2_000_000
    assert not any(bill.values())
    assert record.cost_nano_usd <= record.held_nano_usd


async def test_c81_a_price_by_tokens_is_not_free_where_only_units_are_counted() -> None:
    answer = frame({**RANKED, "meta": {"billed_units": {"search_units": 1}}})
    home = await home_of_rankers([answer], dialect={"rerank": {"by_tokens": True}})
    assert (await rank(home)).status == 200
    record = home.record
    assert record.usage_source == "estimated"
    assert record.cost_nano_usd == (record.usage.uncached_input_tokens or 0) * 100_000 > 0


@pytest.mark.parametrize(("units", "billed"), [(2, 2), (3, 2)])
async def test_c81_units_of_long_documents_are_believed_up_to_their_size(
    units: int, billed: int
) -> None:
    ranked = [{"index": place, "relevance_score": 0.5} for place in range(60)]
    answer = {"results": ranked, "meta": {"billed_units": {"search_units": units}}}
    home = await home_of_rankers([frame(answer)], input="0", search="0.002")
    # Likely one unit, and at most two: each document has two pieces.
    assert (await rank(home, documents=["d" * 600] * 60, top_n=60)).status == 200
    assert home.record.usage.search_units == billed
    assert home.record.cost_nano_usd == billed * 2_000_000
    assert home.record.cost_nano_usd <= home.record.held_nano_usd


def test_long_documents_are_several_units() -> None:
    asked = RerankRequest(model="m", query="q" * 99, documents=("d" * 402,) * 100 + ("d",))
    # Two pieces each of the long ones, and one.
    assert (asked.units.search_units, asked.units_max.search_units) == (2, 3)
    long_query = RerankRequest(model="m", query="q" * 999, documents=("d",))
    assert long_query.units_max.search_units == 1


def test_the_query_is_read_with_each_document() -> None:
    asked = RerankRequest(model="m", query="é", documents=("d", "é", ""))
    assert asked.bytes_per_input == (3, 4, 2)


@pytest.mark.parametrize(
    ("query", "document", "units"),
    [
        # A long query leaves room for 50 tokens, a short one for all but its own bytes.
        ("q" * 999, "d" * 200, 4),
        ("q", "d" * 499, 1),
        ("q", "d" * 500, 2),
        ("é", "d" * 498, 1),
        ("é", "d" * 499, 2),
        # Each byte may be a token.
        ("q", "é" * 250, 2),
        # A document without text is one that is ranked.
        ("q", "", 1),
    ],
)
def test_c81_the_most_units_are_those_of_the_bytes(query: str, document: str, units: int) -> None:
    asked = RerankRequest(model="m", query=query, documents=(document,) * 100)
    assert asked.units_max.search_units == units
    assert asked.units.search_units == 1


@pytest.mark.parametrize(
    "results",
    [
        [],
        [{"index": 0, "relevance_score": 1.0}],
        [{"index": 0, "relevance_score": 1.0}, {"index": 0, "relevance_score": 0.5}],
        [{"index": place, "relevance_score": 0.5} for place in (0, 0, 1)],
        [{"index": 0, "relevance_score": 1.0}, {"index": 3, "relevance_score": 0.5}],
        [{"index": 0, "relevance_score": 1.0}, {"index": -1, "relevance_score": 0.5}],
        [{"index": 0}, {"index": 1}],
        None,
        "no",
    ],
)
async def test_c81_an_answer_that_is_no_such_ranking_is_served_elsewhere(results: Any) -> None:
    home = await home_of_rankers([frame({"results": results})], far=[frame(TOKENS)])
    assert (await rank(home)).json["model"] == "acme/spare"
    assert home.record.attempts[0].error == "provider_unavailable"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"query": ""}, "query"),
        ({"documents": []}, "documents"),
        ({"documents": ["a"] * 1_001}, "documents"),
        ({"documents": ["a", 1]}, "documents[1]"),
        ({"documents": [{"body": "a"}]}, "documents[0].text"),
        ({"documents": ["a" * 700]}, "documents"),
        ({"top_n": 0}, "top_n"),
        ({"query": None}, "query"),
    ],
)
async def test_c41_c81_bad_input_names_its_field_and_spends_nothing(
    fields: dict[str, Any], param: str
) -> None:
    home = await home_of_rankers([frame(TOKENS)])
    reply = await rank(home, **fields)
    assert (reply.status, reply.error["param"]) == (400, param)
    assert home.stores.books.records == {}
    assert home.near.requests == []


async def test_c7_c81_coheres_clients_find_the_format_behind_the_base_url() -> None:
    home = await home_of_rankers([frame(TOKENS)])
    # What ClientV2 of cohere 5.21.1 sends, and langchain-cohere 0.6.0 with it.
    reply = await rank(
        home, path="/api/v1/v2/rerank", documents=["a", "b", "c"], max_tokens_per_doc=None
    )
    assert reply.status == 200
    assert [(each["index"], each["relevance_score"]) for each in reply.json["results"]] == [
        (0, 0.75),
        (2, 0.25),
    ]
    assert (home.record.ingress_format, home.record.trace.kind) == ("rerank", "rerank")
    assert home.record.cost_nano_usd == home.spent_nano_usd > 0


async def test_c81_an_overloaded_ranker_is_retried_and_then_another_serves() -> None:
    home = await home_of_rankers(refuses(529), far=[frame(TOKENS)])
    reply = await rank(home)
    assert reply.headers["x-fallback-from"] == "acme/rank"


async def test_c26_c81_tokens_are_billed_where_units_are_reported_beside_them() -> None:
    both = {**TOKENS, "meta": {"billed_units": {"search_units": 1}}}
    home = await home_of_rankers([frame(both)])
    assert (await rank(home)).status == 200
    assert (home.spent_nano_usd, home.record.usage.search_units) == (900_000, 1)


async def test_c81_units_that_are_null_are_not_reported() -> None:
    home = await home_of_rankers([frame({**TOKENS, "meta": {"billed_units": None}})])
    assert (await rank(home)).status == 200
    assert home.spent_nano_usd == 900_000
