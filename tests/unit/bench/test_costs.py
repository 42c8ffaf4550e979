"""The prices of docs/performance.md are those that bench/costs.py computes."""

from bench import costs


def test_the_pages_have_the_computed_tables() -> None:
    for path, lines in (
        (costs.PAGE, costs.write_table()),
        (costs.SOURCES, costs.write_sources()),
    ):
        page = path.read_text(encoding="utf-8")
        assert page == costs.written(page, lines), "run python -m bench.costs"


def test_on_demand_does_not_depend_on_the_rate_and_waiting_is_most_of_it() -> None:
    waiting = 1_000_000 * 5 * 0.5 * 0.0000133334
    assert round(costs.cost_on_demand() - waiting, 2) == 3.70


def test_three_instances_run_at_any_rate_and_the_fee_is_paid_on_them() -> None:
    hour = 3 * 2 * 0.0408 * 1.15
    at_one = costs.cost_managed(1, 16) - 3.70
    assert round(at_one, 6) == round(hour * 1_000_000 / 3_600, 6)


def test_rates_share_what_runs_anyway_and_cpu_bounds_the_concurrency() -> None:
    for concurrency in (16, 64):
        assert costs.cost_managed(100, concurrency) < costs.cost_managed(10, concurrency)
    assert costs.cost_managed(1_000, 64) < costs.cost_managed(1_000, 16)
    # 1,600 places in one vCPU would not be served: the CPU time of a request is the limit.
    assert costs.cost_managed(1_000, 1_600) > costs.cost_managed(1_000, 64) / 2


def test_the_break_even_is_where_the_prices_cross() -> None:
    rate = costs.break_even(16)
    assert costs.cost_managed(rate, 16) < costs.cost_on_demand()
    assert costs.cost_managed(rate - 0.1, 16) >= costs.cost_on_demand()
