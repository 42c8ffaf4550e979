"""What a generation is measured and billed by.

Keeps C26, C36, C52, C65, C66.
"""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import permutations

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from tests.clocks import FixedClock
from tests.strategies import usages
from tests.unit.ingress.samples import chat_completions
from tests.unit.routing.catalogs import catalog, endpoint, model, plan_of, principal
from tollgate.core.clock import Deadline
from tollgate.core.content import Text
from tollgate.core.errors import ErrorCode, InternalError, UpstreamError
from tollgate.core.events import Ended, PartDelta, PartStart, Started, UsageReported
from tollgate.core.usage import Usage
from tollgate.engine.gateway import Call
from tollgate.engine.meter import Meter
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.price import bill
from tollgate.stores.ports.base import Hold

BODY = b'{"model": "acme/large", "messages": [{"role": "user", "content": "Hello there."}]}'
# Of "Hello there.", which is 12 bytes, and of its message.
PROMPT_TOKENS = 3 + 4
COMPLETE = Usage(uncached_input_tokens=10, output_tokens=2)


def meter(
    *,
    serving: bool = True,
    of: Catalog | None = None,
    choices: int = 1,
    output_tokens_max: int | None = None,
) -> Meter:
    """A meter of one attempt; several choices come in a stream each."""
    clock = FixedClock()
    body = BODY if choices == 1 else BODY[:-1] + b', "n": %d}' % choices
    if output_tokens_max is not None:
        body = body[:-1] + b', "max_tokens": %d}' % output_tokens_max
    call = Call(
        ingress_format="chat_completions",
        principal=principal(),
        parsed=chat_completions().parse(body),
        request_id="Na1b2c3d4e5f6g7",
        deadline=Deadline.within(clock, 60),
    )
    plan = plan_of(of or catalog(), call.parsed.request, principal=call.principal)
    hold = Hold(
        id=call.request_id,
        workspace_id="team",
        key_id="key",
        shard=0,
        wallet_nano_usd=5,
        key_nano_usd=5,
    )
    made = Meter(clock, call, plan, hold)
    made.begin_attempt(plan.attempts[0])
    if serving:
        made.commit_attempt(plan.attempts[0], streams=choices)
        for choice in range(choices):
            made.observe(Started(), choice)
    return made


def says(made: Meter, text: str) -> None:
    made.observe(PartStart(index=0, part=Text(text="")))
    made.observe(PartDelta(index=0, text=text))


def test_c26_reports_are_merged_class_by_class_and_the_last_one_wins() -> None:
    made = meter()
    made.observe(UsageReported(usage=Usage(uncached_input_tokens=10, output_tokens=1), raw="1"))
    made.observe(UsageReported(usage=Usage(cache_read_input_tokens=4, output_tokens=7), raw="2"))
    made.observe(Ended(finish="stop"))
    record = made.record()
    assert record.usage == Usage(
        uncached_input_tokens=10, cache_read_input_tokens=4, output_tokens=7
    )
    assert (record.usage_source, record.raw_usage) == ("provider", "2")


@given(usage=usages)
def test_c65_the_cost_is_the_sum_of_its_lines(usage: Usage) -> None:
    made = meter()
    made.observe(UsageReported(usage=usage))
    made.observe(Ended(finish="stop"))
    record = made.record()
    assert record.cost_nano_usd == sum(line.cost_nano_usd for line in record.lines)
    assert record.lines == bill(
        record.usage, catalog().models["acme/large"].endpoints[0].price.price
    )


@pytest.mark.parametrize(
    ("rate", "item", "cost"),
    [
        (None, "unpriced_web_search", 0),
        ("0.014", "provider_web_search", 28_000_000),
    ],
)
def test_c65_searches_of_the_provider_are_a_line_of_the_record(
    rate: str | None, item: str, cost: int
) -> None:
    rates = {} if rate is None else {"web_search": rate}
    made = meter(of=catalog(models={"acme/large": model(endpoint("near", "large", **rates))}))
    says(made, "I looked it up.")
    made.observe(UsageReported(usage=replace(COMPLETE, web_searches=2)))
    made.observe(Ended(finish="stop"))
    line = made.record().lines[-1]
    assert (line.item, line.quantity, line.cost_nano_usd) == (item, 2, cost)


@pytest.mark.parametrize(
    ("reported", "text", "output_tokens"),
    [(None, "12345", 2), (None, "éééé", 2), (1, "12345678", 2), (9, "12345678", 9)],
)
def test_c36_an_answer_without_an_end_counts_at_least_what_was_delivered(
    reported: int | None, text: str, output_tokens: int
) -> None:
    made = meter()
    if reported is not None:
        made.observe(UsageReported(usage=Usage(output_tokens=reported)))
    says(made, text)
    record = made.record()
    assert (record.outcome, record.usage_source) == ("cancelled", "estimated")
    assert record.usage.output_tokens == output_tokens
    assert record.usage.uncached_input_tokens == PROMPT_TOKENS


@pytest.mark.parametrize("nonsense", [-5, 10**24])
def test_c65_a_count_that_no_answer_can_have_is_not_billed(nonsense: int) -> None:
    made = meter()
    says(made, "So it is.")
    made.observe(UsageReported(usage=Usage(uncached_input_tokens=nonsense, output_tokens=3)))
    made.observe(Ended(finish="stop"))
    record = made.record()
    assert record.usage_source == "estimated"
    assert all(0 < line.quantity < 100 and line.cost_nano_usd > 0 for line in record.lines)


def test_what_a_provider_says_cannot_make_a_record_too_large_to_be_written() -> None:
    made = meter()
    made.observe(Started(upstream_id="x" * 10**6, service_tier="y" * 10**6))
    says(made, "So.")
    made.observe(UsageReported(usage=COMPLETE, raw={"padding": "z" * 10**6}))
    made.observe(Ended(finish="stop", raw_finish="w" * 10**6))
    assert len(msgspec.json.encode(made.record())) < 4_000
    small = {"prompt_tokens": 10}
    made.observe(UsageReported(usage=COMPLETE, raw=small))
    assert made.record().raw_usage == small


def test_c65_a_raw_number_that_no_record_can_store_is_kept_as_text() -> None:
    made = meter()
    made.observe(UsageReported(usage=COMPLETE, raw={"prompt_tokens": [10**30, -(10**30), 5]}))
    record = made.record()
    assert record.raw_usage == {"prompt_tokens": [str(10**30), str(-(10**30)), 5]}
    assert msgspec.json.encode(record)


def billed(made: Meter, **reported: int) -> tuple[Usage, str]:
    made.observe(UsageReported(usage=Usage(**reported), raw={"reported": True}))
    made.observe(Ended(finish="stop"))
    record = made.record()
    assert record.cost_nano_usd == sum(line.cost_nano_usd for line in record.lines)
    assert record.raw_usage == {"reported": True}
    return record.usage, record.usage_source


REASONER = model(endpoint("near", "large"), supports=("reasoning",))


@pytest.mark.parametrize(
    ("reasons", "limit", "bound"),
    [
        (False, None, 2 * 5 + 1_024),
        (False, 5, 5 + 64),
        (True, None, 2 * 5 + 1_024 + 10_000),
        (True, 5, 5 + 64),
    ],
)
def test_c65_no_more_output_is_billed_than_was_shown_or_may_be_hidden(
    reasons: bool, limit: int | None, bound: int
) -> None:
    of = catalog(models={"acme/large": REASONER}) if reasons else None
    made = meter(of=of, output_tokens_max=limit)
    says(made, "12345")
    usage, source = billed(made, uncached_input_tokens=10, output_tokens=10**9)
    assert (usage.output_tokens, usage.uncached_input_tokens, source) == (bound, 10, "bounded")


@pytest.mark.parametrize("searches", [False, True])
def test_c65_no_more_input_is_billed_than_was_sent_or_where_text_is_found_fits(
    searches: bool,
) -> None:
    rates = {"web_search": "0.01"} if searches else {}
    made = meter(of=catalog(models={"acme/large": model(endpoint("near", "large", **rates))}))
    says(made, "Hi.")
    lie = {"uncached_input_tokens": 10, "cache_read_input_tokens": 10**9, "output_tokens": 2}
    usage, source = billed(made, **lie)
    most = 100_000 if searches else 2 * made.record().trace.input_tokens_max + 4_096
    assert (usage.input_tokens, usage.uncached_input_tokens, source) == (most, 10, "bounded")


def test_c65_searches_and_images_have_a_bound() -> None:
    made = meter()
    says(made, "Hi.")
    lie = {"uncached_input_tokens": 10, "output_tokens": 2, "web_searches": 10**9, "images": 10**9}
    usage, source = billed(made, **lie)
    assert (usage.web_searches, usage.images, source) == (1_000, 1, "bounded")


def test_c65_reasoning_that_is_not_shown_is_billed_as_it_was_reported() -> None:
    made = meter()
    says(made, "Hi.")
    usage, source = billed(
        made, uncached_input_tokens=4_000, output_tokens=10_000, reasoning_tokens=9_998
    )
    assert (usage.output_tokens, usage.reasoning_tokens, source) == (10_000, 9_998, "provider")


def test_c65_a_long_answer_is_billed_as_it_was_reported_whatever_the_catalog_says() -> None:
    made = meter()
    says(made, "word " * 128_000)
    usage, source = billed(made, uncached_input_tokens=10, output_tokens=128_000)
    assert (usage.output_tokens, source) == (128_000, "provider")


def test_c65_a_prompt_that_was_blocked_is_billed_what_was_reported_and_nothing_else() -> None:
    made = meter()
    says(made, "I must not read this prompt.")
    made.observe(Ended(finish="content_filter", prompt_blocked=True))
    record = made.record()
    assert (record.outcome, record.usage, record.usage_source) == ("ok", Usage(), "none")
    assert (record.cost_nano_usd, record.lines) == (0, ())
    made.observe(UsageReported(usage=Usage(uncached_input_tokens=9)))
    record = made.record()
    assert (record.usage, record.usage_source) == (Usage(uncached_input_tokens=9), "provider")


def test_c65_one_stream_at_its_bound_marks_the_whole_bill() -> None:
    made = meter(choices=2)
    for choice in (0, 1):
        usage = Usage(uncached_input_tokens=10, output_tokens=2 if choice else 10**9)
        made.observe(UsageReported(usage=usage), choice)
        made.observe(Ended(finish="stop"), choice)
    record = made.record()
    assert (record.usage.output_tokens, record.usage_source) == (1_024 + 2, "bounded")


def test_c65_usage_of_an_attempt_that_failed_has_a_bound() -> None:
    made = meter(serving=False)
    attempt = plan_of(
        catalog(), chat_completions().parse(BODY).request, principal=principal()
    ).attempts[0]
    failure = UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "It broke.")
    made.fail_attempt(attempt, failure, Usage(output_tokens=10**9))
    made.fail(failure)
    [record] = made.record().attempts
    assert 0 < record.operator_cost_nano_usd < 10**9


def test_c26_reasoning_is_part_of_the_output_in_the_record() -> None:
    made = meter()
    made.observe(UsageReported(usage=replace(COMPLETE, reasoning_tokens=11)))
    made.observe(Ended(finish="stop"))
    assert made.record().usage.reasoning_tokens == COMPLETE.output_tokens


def test_c66_the_tier_that_served_is_in_the_record() -> None:
    made = meter()
    says(made, "So.")
    made.observe(UsageReported(usage=COMPLETE, service_tier="reserved"))
    made.observe(Ended(finish="stop"))
    assert made.record().service_tier == "reserved"


def test_c66_an_answer_whose_provider_counts_nothing_is_estimated_and_says_so() -> None:
    made = meter()
    says(made, "12345678")
    made.observe(Ended(finish="stop"))
    record = made.record()
    assert (record.outcome, record.usage_source) == ("ok", "estimated")
    assert record.usage == Usage(uncached_input_tokens=PROMPT_TOKENS, output_tokens=2)


@pytest.mark.parametrize(
    ("streams", "source"),
    [
        (("provider", "provider"), "provider"),
        (("provider", "estimated"), "estimated"),
        (("none", "estimated"), "estimated"),
        (("none", "provider"), "provider"),
        (("none", "none"), "none"),
        (("none", "provider", "estimated"), "estimated"),
    ],
)
def test_c66_a_sum_is_an_estimate_if_a_stream_is_and_reported_if_one_is(
    streams: tuple[str, ...], source: str
) -> None:
    for order in permutations(streams):
        made = meter(choices=len(order))
        for choice, each in enumerate(order):
            if each == "provider":
                made.observe(UsageReported(usage=COMPLETE), choice)
                made.observe(Ended(finish="stop"), choice)
            if each == "estimated":
                made.observe(PartStart(index=0, part=Text(text="")), choice)
                made.observe(PartDelta(index=0, text="12345678"), choice)
        assert made.record().usage_source == source


def test_c66_a_complete_report_is_never_corrected_by_an_estimate() -> None:
    made = meter()
    says(made, "1234" * 100)
    made.observe(UsageReported(usage=COMPLETE))
    made.observe(Ended(finish="stop"))
    assert made.record().usage == COMPLETE
    assert made.record().usage_source == "provider"


def test_c52_nothing_served_means_nothing_used() -> None:
    record = meter(serving=False).record()
    assert (record.usage, record.usage_source, record.cost_nano_usd) == (Usage(), "none", 0)
    assert (record.model, record.provider) == (None, None)


def test_an_error_costs_the_caller_nothing_and_the_operator_what_was_used() -> None:
    made = meter()
    made.observe(UsageReported(usage=COMPLETE))
    made.fail(UpstreamError(ErrorCode.PROVIDER_OVERLOADED, "It broke.", status=529))
    record = made.record()
    assert (record.outcome, record.error) == ("error", "provider_overloaded")
    assert (record.cost_nano_usd, record.lines) == (0, ())
    [attempt] = record.attempts
    assert (attempt.error, attempt.status) == ("provider_overloaded", 529)
    assert attempt.operator_cost_nano_usd == 60_000


def test_a_cut_is_billed_to_the_caller_and_not_to_the_operator_too() -> None:
    made = meter()
    made.observe(UsageReported(usage=COMPLETE))
    says(made, "x")
    made.cut(UpstreamError(ErrorCode.PROVIDER_TIMEOUT, "Too late."))
    record = made.record()
    assert (record.outcome, record.cost_nano_usd) == ("cancelled", 60_000)
    assert record.attempts[0].operator_cost_nano_usd == 0


def test_a_defect_after_the_commit_point_marks_its_attempt() -> None:
    made = meter()
    made.fail(InternalError())
    assert [attempt.error for attempt in made.record().attempts] == ["internal_error"]


def test_a_record_may_be_asked_for_at_any_moment() -> None:
    made = meter()
    says(made, "1234")
    assert made.record() == made.record()
    assert made.record().held_nano_usd == 5
    assert Decimal(made.record().lines[0].usd_per_million) == 3


def test_c65_the_bill_takes_the_prices_of_the_time_and_of_the_prompt() -> None:
    now = datetime.fromtimestamp(FixedClock().now_s(), UTC).date()
    overrides = (
        {"when": {"from": now}, "price": {"output": 5}},
        {"when": {"from": now + timedelta(days=1)}, "price": {"output": 9}},
        {"when": {"prompt_tokens_over": 100}, "price": {"input": 7}},
    )
    offer = endpoint("near", "large-1", dollars_in="3", dollars_out="15") | {"overrides": overrides}
    dated = catalog(models={"acme/large": model(offer)}, aliases={}, routes={})
    for tokens, rate in ((100, 3), (101, 7)):
        made = meter(of=dated)
        used = Usage(uncached_input_tokens=60, cache_read_input_tokens=tokens - 60, output_tokens=1)
        made.observe(UsageReported(usage=used))
        made.observe(Ended(finish="stop"))
        rates = {line.item: line.usd_per_million for line in made.record().lines}
        assert rates == {"input": rate, "cache_read": rate, "output": 5}


def test_c65_what_is_charged_by_the_request_is_charged_once_among_streams_of_two_rates() -> None:
    overrides = ({"when": {"prompt_tokens_over": 100}, "price": {"input": 7}},)
    offer = endpoint("near", "large-1", request="0.01") | {"overrides": overrides}
    made = meter(of=catalog(models={"acme/large": model(offer)}, aliases={}, routes={}), choices=2)
    for choice, tokens in enumerate((100, 101)):
        made.observe(UsageReported(usage=Usage(uncached_input_tokens=tokens)), choice)
        made.observe(Ended(finish="stop"), choice)
    assert sorted(it.item for it in made.record().lines) == ["input", "input", "request"]
