"""Statements: months, lines that become too many, refunds of usage that is not in the month.

Keeps C64.
"""

from datetime import UTC, datetime

import pytest
from msgspec import json

from tollgate.core.errors import RequestError
from tollgate.core.money.statement import UsageGroup, read_month
from tollgate.core.records.activity import Activity, ActivityRow
from tollgate.stores.ports.credit import CreditEntry
from tollgate.stores.rules.statements import LINES_MAX, Spending, make_statement

NOW_S = int(datetime(2026, 12, 3, tzinfo=UTC).timestamp())


@pytest.mark.parametrize(
    "text", ["", "2026", "2026-13", "2026-00", "1999-12", "2026-1", "2026-11-01", "٢٠٢٦-١١"]
)
def test_c64_what_is_no_month_is_refused_by_the_name_of_the_field(text: str) -> None:
    with pytest.raises(RequestError) as refused:
        read_month(text, NOW_S)
    assert refused.value.param == "month"


def test_c64_a_month_to_come_is_refused_and_december_ends_with_its_year() -> None:
    with pytest.raises(RequestError):
        read_month("2027-01", NOW_S)
    december = read_month("2026-12", NOW_S)
    assert december.until_s - december.since_s == 31 * 86_400


def test_c64_lines_beyond_the_bound_are_summed_by_member_and_add_up() -> None:
    rows = tuple(
        ActivityRow(
            day="2026-11-02",
            model="test/echo",
            provider="simulator",
            key_id=f"{number}",
            labels={"team": "search", "member": f"dev-{number}"},
            requests=1,
            cost_nano_usd=number,
        )
        for number in range(LINES_MAX + 1)
    )
    month = read_month("2026-11", NOW_S)
    found = make_statement(
        "acme",
        month,
        entries=(),
        before=Spending(),
        activity=Activity(rows=rows),
        now_s=NOW_S,
    )
    assert found.summed == ("member",)
    [line] = found.lines
    assert line.group == UsageGroup(team="search", model="test/echo", provider="simulator")
    assert line.cost_nano_usd == found.usage_nano_usd == sum(range(LINES_MAX + 1))
    few = make_statement(
        "acme",
        month,
        entries=(),
        before=Spending(),
        activity=Activity(rows=rows[1:]),
        now_s=NOW_S,
    )
    assert (few.summed, len(few.lines)) == ((), LINES_MAX)


def test_c64_the_playgrounds_usage_is_apart_unless_there_are_too_many_lines() -> None:
    rows = tuple(
        ActivityRow(
            day="2026-11-02",
            model=f"test/{number}",
            provider="simulator",
            key_id="key",
            caller_labels={"source": source, "app": f"{number}"},
            requests=1,
            cost_nano_usd=1,
        )
        for number in range(LINES_MAX // 2 + 1)
        for source in ("playground", "mine")
    )

    def lines_of(some: tuple[ActivityRow, ...]) -> list[tuple[str | None, int]]:
        found = make_statement(
            "acme",
            read_month("2026-11", NOW_S),
            entries=(),
            before=Spending(),
            activity=Activity(rows=some),
            now_s=NOW_S,
        )
        assert found.usage_nano_usd == len(some)
        return [(line.group.source, line.requests) for line in found.lines]

    # Callers could set a label `source` in earlier releases; it is not the generation's source.
    assert lines_of(rows[:2]) == [("api", 1), ("playground", 1)]
    assert set(lines_of(rows)) == {(None, 2)}


def test_c64_a_refund_that_an_earlier_release_stored_is_of_the_api() -> None:
    stored = b'{"team":"search","member":null,"model":"test/echo","provider":"simulator"}'
    group = UsageGroup.of({"team": "search"}, "test/echo", "simulator", caller_labels={})
    assert json.decode(stored, type=UsageGroup) == group


def test_c64_a_refund_of_an_earlier_months_usage_is_a_line_below_zero() -> None:
    month = read_month("2026-11", NOW_S)
    group = UsageGroup(team="search", model="test/echo", provider="simulator")
    refunds = [
        CreditEntry(
            id=f"refund:{number}",
            workspace_id="acme",
            kind="refund",
            amount_nano_usd=5,
            note="",
            created_s=month.since_s + number,
            refunded=group if number else None,
        )
        for number in range(2)
    ]
    found = make_statement(
        "acme",
        month,
        entries=refunds,
        before=Spending(cost_nano_usd=10),
        activity=Activity(rows=()),
        now_s=NOW_S,
    )
    assert [line.net_nano_usd for line in found.lines] == [-5]
    assert (found.opening_nano_usd, found.closing_nano_usd) == (-10, 0)
    assert found.final
