"""What two revisions differ in, in the words of the file.

Keeps C50, C53.
"""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.routing.catalogs import RECENTLY, endpoint, model, provider, routing
from tollgate.routing.file.compile import canonical_json
from tollgate.routing.review.diff import Change, Fact, list_changes
from tollgate.routing.review.facts import summarize_price
from tollgate.routing.review.review import Review
from tollgate.routing.routing_file import Routing


def large(*endpoints: dict[str, object], **facts: object) -> Routing:
    return routing(
        models={"acme/large": model(*endpoints, **facts)}, aliases={}, routes={}, key_tiers={}
    )


def tool_price(call: str) -> dict[str, object]:
    return {"call": Decimal(call), "source": "made up", "checked": "2026-11-21"}


NEAR = endpoint("near", "large-1", dollars_in="2.2", dollars_out="11")
FAR = endpoint("far", "L")


def ocr(page: str, source: str = "made up") -> dict[str, object]:
    return {
        "engine": "mistral",
        "model": "ocr-1",
        "key": {"env": "OCR_API_KEY"},
        "price": {"page": page, "source": source, "checked": RECENTLY},
    }


# Each is a small file, apart from the others in one thing or another.
VARIANTS = (
    routing(),
    routing(aliases={"gpt-4o": {"to": "acme/large"}}),
    routing(key_tiers={"free": {"rpm": 3}}),
    routing(providers={"near": provider(), "far": provider()}),
    routing(defaults={"hold_output_tokens": 7}),
    routing(billing={"admission": "covered"}),
    routing(routes={}, aliases={}),
    routing(plugins={"pdf": {"price": {"text": "0.001"}}}),
    routing(plugins={"pdf": {"price": {"text": "0.002"}, "pages_max": 9}}),
    large(NEAR),
    large(NEAR, FAR),
    large(FAR, NEAR),
    large({**NEAR, "weight": 40}, {**FAR, "weight": 60}),
    large(NEAR, supports=("tools",)),
    large({**NEAR, "overrides": ({"when": {"from": "2026-12-01"}, "price": {"input": 9}},)}),
    routing(server_tools={"datetime": {}}),
    routing(server_tools={"datetime": {"timezone": "Europe/Berlin"}}),
    routing(server_tools={"web_fetch": {"price": tool_price("0.001")}}),
    routing(server_tools={"web_fetch": {"price": tool_price("0.002"), "uses_max": 3}}),
    routing(server_tools={"web_fetch": {"price": {**tool_price("0.001"), "source": "another"}}}),
    routing(plugins={"pdf": {"price": {"text": "0.001"}, "ocr": ocr("0.001")}}),
    routing(plugins={"pdf": {"price": {"text": "0.001"}, "ocr": ocr("0.002")}}),
    routing(plugins={"pdf": {"price": {"text": "0.001"}, "ocr": ocr("0.001", source="another")}}),
)


def test_a_page_that_costs_more_is_told_with_its_rise() -> None:
    before, after = (
        routing(plugins={"pdf": {"price": {"text": price}, "pages_max": pages}})
        for price, pages in (("0.001", 10), ("0.002", 20))
    )
    price, plugin = sorted(list_changes(before, after), key=lambda change: change.what != "price")
    assert (plugin.what, plugin.subject) == ("plugin", "pdf")
    assert plugin.facts == (Fact(name="pages_max", before="10", after="20"),)
    # A price, as all others are, under the name that it has in a bill.
    assert (price.what, price.subject) == ("price", "pdf_page")
    assert price.facts == (
        Fact(name="text", before="0.001", after="0.002", percent=Decimal("100.0")),
    )
    assert Review(base="a", head="b", changes=(price,)).label == "routing:price"


def test_a_recognized_page_that_costs_more_is_told_and_its_source_is_a_note() -> None:
    one, dearer, elsewhere = (
        routing(plugins={"pdf": {"price": {}, "ocr": section}})
        for section in (ocr("0.001"), ocr("0.002"), ocr("0.001", source="another"))
    )
    (change,) = list_changes(one, dearer)
    assert (change.what, change.subject) == ("price", "pdf_page_ocr")
    assert change.facts == (
        Fact(name="page", before="0.001", after="0.002", percent=Decimal("100.0")),
    )
    assert [each.what for each in list_changes(one, elsewhere)] == ["note"]


@given(st.sampled_from(VARIANTS), st.sampled_from(VARIANTS))
def test_nothing_differs_from_itself_and_whatever_else_does_is_told(
    one: Routing, other: Routing
) -> None:
    assert bool(list_changes(one, other)) == (canonical_json(one) != canonical_json(other))


@given(st.sampled_from(VARIANTS), st.sampled_from(VARIANTS))
def test_the_way_back_takes_away_what_the_way_there_adds(one: Routing, other: Routing) -> None:
    def named(kind: str, found: tuple[Change, ...]) -> set[tuple[str, str]]:
        return {(change.what, change.subject) for change in found if change.kind == kind}

    there, back = list_changes(one, other), list_changes(other, one)
    assert named("added", there) == named("removed", back)
    assert named("changed", there) == named("changed", back)


def test_c65_prices_are_told_by_class_and_day_with_their_rise() -> None:
    dated = {"when": {"from": "2026-12-01"}, "price": {"output": Decimal(22)}}
    dearer = endpoint("near", "large-1", dollars_in="2.42", dollars_out="11")
    [change] = list_changes(large(NEAR), large({**dearer, "overrides": (dated,)}))
    assert (change.kind, change.what, change.subject) == (
        "changed",
        "price",
        "acme/large @ near/large-1",
    )
    assert change.facts == (
        Fact(name="input", before="2.20", after="2.42", percent=Decimal("10.0")),
        Fact(name="from 2026-12-01 output", before=None, after="22.00"),
    )


def drawn(*whens: dict[str, str], rate: str = "0.08") -> Routing:
    prices = tuple({"when": when, "price": {"image": Decimal(rate)}} for when in whens)
    offer = endpoint("near", "painter", dollars_in="0", dollars_out="0", image=Decimal("0.04"))
    return large({**offer, "overrides": prices})


def test_c65_c82_prices_of_pictures_are_told_by_size_and_quality() -> None:
    whens = ({"image_size": "512x512"}, {"image_over": "1024x1024", "image_quality": "hd"})
    [change] = list_changes(drawn(*whens), drawn(*whens, rate="0.09"))
    assert change.facts == tuple(
        Fact(name=f"{when} image", before="0.08", after="0.09", percent=Decimal("12.5"))
        for when in ("size 512x512", "larger than 1024x1024 quality hd")
    )
    assert summarize_price(drawn(whens[1]).models["acme/large"].endpoints[0]) == (
        "image 0.04, larger than 1024x1024 quality hd image 0.08"
    )


def test_a_first_price_has_no_rise() -> None:
    free = endpoint("near", "large-1", dollars_in="0", dollars_out="11")
    [change] = list_changes(large(free), large(NEAR))
    assert change.facts == (Fact(name="input", before="0.00", after="2.20"),)


def test_c53_weights_rules_and_promises_of_a_route_are_told_by_their_place() -> None:
    def route(**changed: object) -> Routing:
        weights = {"acme/large": 90, "acme/small": 10}
        rules = ({"if": {"key_tier": "free"}, "try": ("acme/small",)}, {"try": (weights,)})
        return routing(
            key_tiers={"free": {}},
            routes={"smart": {"description": "d", "rules": rules, **changed}},
        )

    rules = ({"try": ({"acme/large": 70, "acme/small": 30}, "other/tools")},)
    [change] = list_changes(route(), route(rules=rules, promise={"context_min": 9}))
    assert {fact.name: (fact.before, fact.after) for fact in change.facts} == {
        "promise.supports": (None, "none"),
        "promise.context_min": (None, "9"),
        "rule 1 if": ("key_tier free", None),
        "rule 1 step 1": ("acme/small", "acme/large 70, acme/small 30, then other/tools"),
        "rule 2 step 1": ("acme/large 90, acme/small 10", None),
    }


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("a b c d", "a c d", ("step 2", "x/b", None)),
        ("a c d", "a b c d", ("step 2", None, "x/b")),
        ("a b c d", "a e c d", ("step 2", "x/b", "x/e")),
        ("a b c d", "a d", ("step 2", "x/b, then x/c", None)),
        ("a b c", "c b a", ("step 1", "x/a, then x/b, then x/c", "x/c, then x/b, then x/a")),
        ("a b", "a b c", ("step 3", None, "x/c")),
    ],
)
def test_c50_of_a_chain_only_what_changes_is_told_and_not_what_moves_up(
    before: str, after: str, told: tuple[str, str | None, str | None]
) -> None:
    def route(chain: str) -> Routing:
        steps = tuple(f"x/{letter}" for letter in chain.split())
        models = {slug: model(NEAR) for slug in {*steps, "x/a", "x/b", "x/c", "x/d", "x/e"}}
        return routing(models=models, routes={"smart": {"description": "d", "try": steps}})

    [change] = list_changes(route(before), route(after))
    assert [(fact.name, fact.before, fact.after) for fact in change.facts] == [told]


def test_what_only_people_read_is_a_note() -> None:
    renamed = large({**NEAR, "price": {**dict(NEAR["price"]), "checked": "2026-11-20"}}, name="B")  # type: ignore[call-overload]  # a dict
    assert {change.what for change in list_changes(large(NEAR), renamed)} == {"note"}


def test_removals_come_first() -> None:
    kinds = [change.kind for change in list_changes(VARIANTS[0], VARIANTS[10])]
    assert kinds == sorted(kinds, key=("removed", "changed", "added").index)
    assert len(set(kinds)) > 1


def test_c53_a_price_of_a_tool_is_a_price_and_its_other_values_are_the_tools() -> None:
    def tools(call: str, **values: object) -> Routing:
        return routing(server_tools={"web_fetch": {"price": tool_price(call), **values}})

    changes = list_changes(tools("0.001"), tools("0.0015", blocked_domains=("bad.example",)))
    assert changes == (
        Change(
            kind="changed",
            what="tool",
            subject="web_fetch",
            facts=(Fact(name="blocked_domains", before="none", after="bad.example"),),
        ),
        Change(
            kind="changed",
            what="price",
            subject="web_fetch",
            facts=(Fact(name="call", before="0.001", after="0.0015", percent=Decimal("50.0")),),
        ),
    )
    (added,) = list_changes(routing(), tools("0.001"))
    assert (added.kind, added.what, added.subject) == ("added", "tool", "web_fetch")
    assert Fact(name="call", before=None, after="0.001") in added.facts
