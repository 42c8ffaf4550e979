"""Recorded traffic through two revisions.

Keeps C53, C65.
"""

from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from functools import reduce
from typing import Any

import pytest
from msgspec.structs import replace

from tests.traffic import line, planning_request, record
from tests.unit.routing.catalogs import (
    NOW_S,
    RECENTLY,
    catalog,
    endpoint,
    model,
    provider,
    routing,
)
from tollgate.core.prompt_policy import PromptPolicy
from tollgate.core.records.generation import Fee, GenerationRecord, RoundsBound, total_nano_usd
from tollgate.core.usage import Usage
from tollgate.routing.file.compile import canonical_json
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.planner import Planner
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.price import bill, bill_fees
from tollgate.routing.review.diff import find_differing_days, list_changes
from tollgate.routing.review.replay import Flow, TrafficReplay, replay_traffic
from tollgate.routing.review.traffic import BadTraffic, read_traffic
from tollgate.routing.review.verdicts import ReplayPlanner, Unknown, WouldServe
from tollgate.routing.routing_file import Routing

BASE = catalog()
LARGE = "acme/large @ near/large-1"
SMALL = "acme/small @ near/small-1"


def replayed(
    records: Iterable[GenerationRecord], head: Catalog, base: Catalog = BASE
) -> TrafficReplay:
    return replay_traffic(read_traffic(map(line, records)), base, head)


def served(*names: str, base: Catalog = BASE, **wanted: Any) -> list[GenerationRecord]:
    return [record(base, planning_request(name, at, **wanted), at) for at, name in enumerate(names)]


def models(**changed: object) -> dict[str, object]:
    """The models of the small catalog, some of them others."""
    kept = {slug: section.model_dump(exclude_none=True) for slug, section in BASE.models.items()}
    return kept | {name.replace("_", "/"): section for name, section in changed.items()}


def test_c65_a_replay_through_the_same_file_costs_what_was_paid_and_moves_nothing() -> None:
    records = served("acme/large", "smart", "gpt-4o")
    found = replayed(records, BASE)
    assert (found.requests, found.as_recorded) == (3, 3)
    paid = sum(record.cost_nano_usd for record in records)
    assert found.recorded_nano_usd == found.served.before_nano_usd == paid
    assert found.served.after_nano_usd == paid
    assert not found.changes_anything
    assert found.worst is None


def test_c65_c83_a_replay_tells_what_the_traffic_would_have_cost_in_batches() -> None:
    terms = {"form": "openai", "percent": 50, "source": "made up", "checked": RECENTLY}
    head = catalog(providers={"near": provider(batch=terms), "far": provider()})
    records = served("acme/large", "acme/large", "acme/large", "other/tools")
    # The gateway itself runs lines under a prompt policy, and tools.
    searched = replace(
        records[1].trace, rounds=RoundsBound(rounds_max=2, result_tokens=100, fees_nano_usd=0)
    )
    policy = replace(records[2].trace, prompt_policies=(PromptPolicy(no_training=True),))
    changed = [
        records[0],
        replace(records[1], trace=searched),
        replace(records[2], trace=policy),
        records[3],
    ]
    found = replayed(changed, head)
    assert found.batched == Flow(1, 10_500_000, 5_250_000)
    assert replayed(changed, BASE).batched == Flow()
    # Bedrock's batches take no tools.
    bedrock = {"codec": "bedrock", "transport": "bedrock_runtime", "region": "us-east-1"}
    near = {**bedrock, "batch": {**terms, "form": "bedrock"}}
    at_bedrock = catalog(providers={"near": near, "far": provider()})
    assert replayed(changed, at_bedrock).batched == Flow(1, 10_500_000, 5_250_000)
    tools = replace(records[0], trace=replace(records[0].trace, capabilities=("tools",)))
    assert replayed([tools], at_bedrock).batched == Flow()
    # Gemini's batches embed one text a line.
    gemini = provider(codec="gemini", batch={**terms, "form": "gemini"})
    of_gemini = catalog(providers={"near": gemini, "far": provider()})
    for inputs, count in (1, 1), (2, 0):
        embedded = replace(records[0], trace=replace(records[0].trace, inputs=inputs))
        assert replayed([embedded], of_gemini).batched.requests == count
    # A line of a batch costs again what it cost, and adds nothing.
    line_of_batch = replace(records[0], service_tier="batch", cost_nano_usd=5_250_000)
    again = replayed([line_of_batch], head, base=head)
    assert (again.as_recorded, again.batched.requests) == (1, 0)


def test_c65_another_price_costs_otherwise_where_it_is_asked_first() -> None:
    dearer = model(endpoint("near", "large-1", dollars_in="6", dollars_out="30"))
    head = catalog(models=models(acme_large=dearer))
    found = replayed(served("acme/large", "acme/small", "acme/large"), head)
    # 1,000 tokens at $3 and 500 at $15 per million, doubled.
    assert (found.repriced[LARGE].before_nano_usd, found.repriced[LARGE].after_nano_usd) == (
        21_000_000,
        42_000_000,
    )
    assert found.moves == {}
    assert found.worst is not None
    assert (found.worst.before_nano_usd, found.worst.after_nano_usd) == (10_500_000, 21_000_000)
    assert {id_: key.affected for id_, key in found.keys.items()} == {
        "key-0": 1,
        "key-1": 0,
        "key-2": 1,
    }


def test_c53_a_request_that_goes_elsewhere_moves_and_is_billed_there() -> None:
    head = catalog(routes={"smart": {"description": "d", "try": ("acme/large",)}})
    found = replayed(served("smart", "smart"), head)
    assert found.moved == 2
    assert found.moves[("smart", SMALL, LARGE)].requests == 2
    assert found.first_endpoints == {SMALL: 2}
    assert found.repriced == {}


def test_c53_what_the_head_does_not_know_is_refused_and_what_the_base_did_not_is_admitted() -> None:
    records = served("gpt-4o", "acme/large")
    without = catalog(aliases={})
    lost = replayed(records, without)
    assert lost.refused[("gpt-4o", "model_not_found")].requests == 1
    assert lost.served.requests == 1
    assert lost.keys["key-0"].affected == 1
    gained = replayed(records, BASE, without)
    assert gained.admitted["gpt-4o"].requests == 1
    assert replayed(records[:1], without, without).refused_by_both == 1


def test_c53_a_rule_on_a_budget_is_replayed_by_the_share_that_was_recorded() -> None:
    bent = {"if": {"budget_left": "<20%"}, "try": ("acme/large",)}
    rules = (bent, {"try": ("acme/small",)})
    head = catalog(routes={"smart": {"description": "d", "rules": rules}})
    records = [
        *served("smart", budget_left_percent=19),
        *served("smart", budget_left_percent=20),
        *served("smart"),
    ]
    assert replayed(records, head).moves[("smart", SMALL, LARGE)].requests == 1


def shadowed(share: int) -> Catalog:
    shadow = {"model": "acme/large", "share": share, "workspace": "ops", "key_id": "k"}
    route = {"description": "Small", "try": ("acme/small",), "shadow": shadow}
    return catalog(routes={"smart": route})


def test_c53_c102_a_shadow_is_planned_for_the_requests_that_it_draws() -> None:
    base = shadowed(share=50)
    records = served(*["smart"] * 40, "acme/small", base=base)
    found = replayed(records, shadowed(share=100), base)
    [(route, flow)] = found.shadows.items()
    assert (route, flow.requests) == ("smart", 40)
    [planned] = replayed(records[:1], catalog(routes=NAMED_LARGE), base).moves.values()
    assert flow.after_nano_usd == 40 * planned.after_nano_usd
    assert 10 < flow.before_nano_usd / planned.after_nano_usd < 30
    assert not found.changes_anything
    assert not replayed(records, catalog(), catalog()).shadows


NAMED_LARGE: dict[str, Any] = {"smart": {"description": "Large", "try": ("acme/large",)}}


def by_metadata(*conditions: dict[str, object]) -> Catalog:
    rules = (
        *({"if": each, "try": ("acme/large",)} for each in conditions),
        {"try": ("acme/small",)},
    )
    return catalog(
        routes={"smart": {"description": "d", "rules": rules}}, key_tiers={"free": {}, "team": {}}
    )


def test_c53_a_rule_on_metadata_that_were_not_recorded_leaves_a_request_undecided() -> None:
    records = served("smart", metadata={"team": "search"})
    found = replayed(records, by_metadata({"metadata": {"team": "search"}}))
    assert found.undecided[("team",)].requests == 1
    assert found.undecided[("team",)].before_nano_usd == records[0].cost_nano_usd
    assert found.served.requests == 0
    assert not found.changes_anything


@pytest.mark.parametrize(
    "conditions",
    [
        pytest.param(
            [{"key_tier": "team"}, {"metadata": {"a": "b"}}], id="an earlier rule applies"
        ),
        pytest.param([{"key_tier": "free", "metadata": {"a": "b"}}], id="something else fails"),
    ],
)
def test_c53_a_rule_on_metadata_that_decides_nothing_hides_nothing(
    conditions: list[dict[str, object]],
) -> None:
    [request] = read_traffic(map(line, served("smart")))
    assert isinstance(ReplayPlanner(by_metadata(*conditions)).predict(request), WouldServe)


def test_c53_metadata_that_a_rule_read_then_are_known_even_where_a_request_had_none() -> None:
    base = by_metadata({"metadata": {"team": "search"}})
    head = by_metadata({"metadata": {"team": "web"}})
    for metadata, model_after in (({"team": "web"}, "acme/large"), ({}, "acme/small")):
        [request] = read_traffic(map(line, served("smart", base=base, metadata=metadata)))
        verdict = ReplayPlanner(head).predict(request)
        assert isinstance(verdict, WouldServe)
        assert verdict.model == model_after
    other = by_metadata({"metadata": {"member": "ana"}})
    assert ReplayPlanner(other).predict(request) == Unknown(("member",))


def test_c65_traffic_is_made_again_on_days_to_come_at_its_own_hour() -> None:
    def dearer(since: str, **when: str) -> Routing:
        override = {"when": {"from": since, **when}, "price": {"input": Decimal(6)}}
        offer = {**endpoint("near", "large-1", dollars_in="3", dollars_out="15")}
        return routing(models=models(acme_large=model({**offer, "overrides": (override,)})))

    base, head = routing(), dearer("2026-12-01", utc_window="13:00-14:00")
    days = find_differing_days(base, head, date(2026, 11, 21))
    assert days == (date(2026, 12, 1),)
    assert find_differing_days(head, head, date(2026, 11, 21)) == ()
    # The first is of 12:30, the second of 13:30.
    requests = read_traffic(map(line, served("acme/large", "acme/large")))
    found = replay_traffic(requests, BASE, Catalog.from_json(canonical_json(head)), days)
    assert not found.changes_anything
    assert found.later[days[0]] == Flow(2, 21_000_000, 24_000_000)


def test_only_the_next_days_are_planned_for() -> None:
    offers = [
        {"when": {"from": f"2027-0{month}-01"}, "price": {"input": Decimal(6)}}
        for month in (5, 2, 4, 6, 3)
    ]
    large = {**endpoint("near", "large-1"), "overrides": tuple(offers)}
    head = routing(models=models(acme_large=model(large)))
    days = find_differing_days(routing(), head, date(2027, 2, 1))
    assert [day.month for day in days] == [3, 4, 5]


def test_what_broke_is_asked_again_and_costs_nothing() -> None:
    [good] = served("acme/large")
    broken = replace(good, outcome="error", cost_nano_usd=0, lines=())
    dearer = catalog(models=models(acme_large=model(endpoint("near", "large-1", dollars_in="9"))))
    found = replayed([broken], dearer)
    assert (found.requests, found.served.after_nano_usd) == (1, 0)


def test_a_record_of_the_sweeper_is_counted_and_left_out() -> None:
    [good] = served("acme/large")
    lost = replace(good, outcome="lost", trace=replace(good.trace, requested_model=""))
    found = replayed([lost], BASE)
    assert (found.unplanned, found.requests) == (1, 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "line 2: Input data was truncated"),
        (b"[]", "line 2: Expected `object`"),
        (b'{"id": "gen-1"}', "line 2: Object missing required field `created_at`"),
        (b" " * 1_000_001 + b"{}", "line 2 is longer than 1000000 bytes"),
    ],
)
def test_a_line_that_is_no_generation_is_named(text: bytes, said: str) -> None:
    [good] = map(line, served("acme/large"))
    with pytest.raises(BadTraffic, match=said):
        list(read_traffic([good, text]))


def test_lines_are_read_one_by_one() -> None:
    def endless() -> Iterator[bytes]:
        yield line(served("acme/large")[0])
        raise AssertionError("nobody asked for a second line")

    assert next(read_traffic(endless())).key_name == "k0"


def test_c50_an_end_that_only_one_revision_has_is_planned_for() -> None:
    base, today = routing(), date(2026, 11, 21)
    offer = {**endpoint("near", "large-1"), "retires": date(2027, 3, 1)}
    head = routing(models=models(acme_large=model(offer, retires=date(2027, 2, 1))))
    assert find_differing_days(base, head, today) == (date(2027, 2, 1), date(2027, 3, 1))
    assert find_differing_days(head, head, today) == ()
    changed = next(it for it in list_changes(base, head) if it.subject == "acme/large")
    assert ("retires", None, "2027-02-01") in {
        (it.name, it.before, it.after) for it in changed.facts
    }


def in_rounds(*prompts: int) -> GenerationRecord:
    """A record of rounds with prompts of these sizes and answers of ten tokens, and one run."""
    [one] = served("acme/large")
    offer = BASE.models["acme/large"].endpoints[0]
    rounds = tuple(Usage(uncached_input_tokens=each, output_tokens=10) for each in prompts)
    fee = bill_fees([Fee(item="web_search", quantity=1, usd_each=Decimal("0.008"))])
    lines = [
        replace(offer_line, round=number)
        for number, each in enumerate(rounds, 1)
        for offer_line in bill(each, offer.price.price)
    ]
    cost = total_nano_usd((*lines, *fee))
    usage = reduce(Usage.plus, rounds)
    return replace(one, usage=usage, rounds=rounds, lines=(*lines, *fee), cost_nano_usd=cost)


def test_c53_c65_rounds_are_replayed_each_at_the_rates_of_its_own_prompt() -> None:
    recorded = in_rounds(100, 300)
    # 110 and 310 at $3, 20 at $15; the run costs what it did.
    assert recorded.cost_nano_usd == 400 * 3_000 + 20 * 15_000 + 8_000_000
    assert replayed([recorded], BASE).as_recorded == 1

    over = {"when": {"prompt_tokens_over": 200}, "price": {"input": Decimal(6)}}
    offer = endpoint("near", "large-1", dollars_in="3", dollars_out="15") | {"overrides": (over,)}
    large = model(offer, supports=("tools",))
    found = replayed([recorded], catalog(models=models(acme_large=large)))

    # Only the second prompt is over 200 tokens, though their sum is, too.
    after = recorded.cost_nano_usd + 300 * 3_000
    assert found.repriced[LARGE].after_nano_usd == after


def test_c53_c65_a_round_that_nothing_answered_is_replayed_at_no_cost() -> None:
    recorded = in_rounds(100)
    left = replace(recorded, rounds=(*recorded.rounds, Usage()), outcome="cancelled")
    offer = endpoint("near", "large-1", dollars_in="3", dollars_out="15")
    price = {**offer["price"], "request": Decimal("0.001")}
    large = model({**offer, "price": price}, supports=("tools",))

    found = replayed([left], catalog(models=models(acme_large=large)))

    # The one request that was answered is charged for, and not that of a caller who had left.
    assert found.repriced[LARGE].after_nano_usd == left.cost_nano_usd + 1_000_000


def test_c53_c65_a_run_of_a_tool_is_replayed_at_the_price_of_the_revision() -> None:
    recorded = in_rounds(100, 300)
    price = {"call": Decimal("0.005"), "source": "made up", "checked": RECENTLY}
    search = {"engine": "tavily", "key": {"env": "TAVILY_API_KEY"}, "price": price}

    found = replayed([recorded], catalog(server_tools={"web_search": search}))

    assert (found.as_recorded, found.fees) == (1, {"web_search": 1})
    assert found.repriced[LARGE].after_nano_usd == recorded.cost_nano_usd - 3_000_000


def test_c53_a_plan_of_rounds_is_planned_again_from_its_trace() -> None:
    bound = RoundsBound(rounds_max=6, result_tokens=9_000, fees_nano_usd=40_000_000)
    wanted = planning_request("acme/large", 0, rounds=bound)
    plan = Planner(BASE).plan(wanted, now_s=NOW_S)
    assert plan.trace.rounds == bound
    assert PlanningRequest.recorded(plan.trace) == wanted
    again = Planner(BASE).plan(PlanningRequest.recorded(plan.trace), now_s=NOW_S)
    assert again.cost_max_nano_usd == plan.cost_max_nano_usd
    plain = Planner(BASE).plan(planning_request("acme/large", 0), now_s=NOW_S)
    assert plan.cost_max_nano_usd > plain.cost_max_nano_usd + bound.fees_nano_usd
    # A minute's limit counts the prompt twice.
    assert plan.tokens_max == plain.tokens_max + wanted.input_tokens
