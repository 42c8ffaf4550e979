"""Sums of activity as `tollgate spend` shows them.

Keeps C67.
"""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from click.testing import CliRunner

from tollgate.cli.gateway.focus import COLUMNS, focus_rows
from tollgate.cli.gateway.spend import add_refunds, explain_freshness, group_activity
from tollgate.cli.main import main
from tollgate.cli.options import resolve_month


def row(key_id: str, key_name: str, usage: str, **changes: Any) -> dict[str, Any]:
    return {
        "date": "2026-11-21",
        "model": "acme/small",
        "provider_name": "acme",
        "key_id": key_id,
        "key_name": key_name,
        "labels": {},
        "requests": 1,
        "prompt_tokens": 2,
        "completion_tokens": 3,
        "usage": Decimal(usage),
        **changes,
    }


def test_c67_keys_of_one_name_are_kept_apart_by_their_ids() -> None:
    rows = group_activity([row("id1", "ci", "2"), row("id2", "ci", "1")], ["key", "model"])
    assert [(it["key"], it["key_id"], it["usd"]) for it in rows] == [
        ("ci (id1)", "id1", "2"),
        ("ci (id2)", "id2", "1"),
    ]


def test_c67_a_renamed_key_is_one_row_with_its_latest_name() -> None:
    before, after = row("id1", "ci", "2"), row("id1", "nightly", "1", date="2026-11-22")
    [found] = group_activity([before, after], ["key"])
    assert (found["key"], found["key_id"], found["usd"], found["requests"]) == (
        "nightly",
        "id1",
        "3",
        "2",
    )
    assert "key_id" not in group_activity([before], ["day"])[0]


def test_c67_it_tells_how_fresh_each_day_is() -> None:
    days = [f"2026-11-{day:02}" for day in range(1, 21)]
    activity = {
        "closed_days": [*days, "2026-11-22"],
        "live_days": ["2026-11-21", "2026-11-23"],
        "partial_days": ["2026-11-23"],
        "missing_days": ["2026-10-30", "2026-10-31"],
        "last_record_at": "2026-11-23T07:00:00Z",
    }
    assert list(explain_freshness(activity)) == [
        "Final: 2026-11-01 to 2026-11-20, 2026-11-22.",
        (
            "Counted live, at most a minute ago: 2026-11-21, 2026-11-23; last record "
            "2026-11-23T07:00:00Z."
        ),
        "Incomplete: 2026-11-23; try again once the day is closed.",
        (
            "Unknown: 2026-10-30 to 2026-10-31; no sums are stored for these days, and "
            "their records have expired."
        ),
    ]
    assert list(explain_freshness({key: [] for key in activity})) == []
    # A workspace has no unknown days, and none to count, before it was created.
    born = date(2026, 11, 22)
    assert [line.split()[:2] for line in explain_freshness(activity, born)] == [
        ["No", "usage"],
        ["Final:", "2026-11-01"],
        ["Counted", "live,"],
        ["Incomplete:", "2026-11-23;"],
    ]
    assert "2026-11-21" not in [*explain_freshness(activity, born)][2]


def test_c67_refunds_are_those_entered_on_these_days_and_no_other_entries() -> None:
    # Two that were written at midnight follow in the other order of their times.
    entries = [
        {"created_at": f"{moment}Z", "type": kind, "amount": Decimal(amount)}
        for moment, kind, amount in (
            ("2026-11-03T00:00:00", "refund", "16"),
            ("2026-11-02T23:59:59", "refund", "1"),
            ("2026-11-02T12:00:00", "grant", "100"),
            ("2026-11-02T11:00:00", "adjustment", "-50"),
            ("2026-10-31T23:59:59", "refund", "8"),
            ("2026-11-01T00:00:00", "refund", "2"),
        )
    ]
    assert add_refunds(entries, date(2026, 11, 1), date(2026, 11, 3)) == 3


@pytest.mark.parametrize("month", ["0000-01", "9999-12", "2026-13", "2999-01"])
def test_a_month_that_does_not_exist_yet_or_at_all_is_refused(month: str) -> None:
    environment = {"TOLLGATE_KEY": "sk-x", "TOLLGATE_URL": "http://127.0.0.1:1/v1"}
    result = CliRunner().invoke(main, ["spend", "--month", month], env=environment)
    assert (result.exit_code, "--month: " in result.output) == (2, True)


@pytest.mark.parametrize(
    ("text", "today", "month"),
    [
        ("last", date(2026, 11, 27), "2026-10"),
        ("last", date(2027, 1, 1), "2026-12"),
        ("2026-09", date(2026, 11, 27), "2026-09"),
    ],
)
def test_c67_the_last_month_has_a_name(text: str, today: date, month: str) -> None:
    assert resolve_month(text, today) == month


def test_c67_showback_in_focus_adds_up_to_the_costs_less_the_refunds() -> None:
    served = row("id1", "ci", "0.5", labels={"team": "search", "env": "ci"}, requests=4)
    failed = row("id1", "ci", "0", provider_name=None, model=None)
    refund = {
        "type": "refund",
        "created_at": "2026-12-01T10:00:00Z",
        "amount": Decimal("0.2"),
        "generation_id": "gen-1",
        "refunded": {
            "team": "search",
            "member": "ana",
            "model": "acme/small",
            "source": "playground",
        },
    }
    usage, back, old = focus_rows("acme", [served, failed], [refund, refund | {"refunded": None}])
    assert (back["SubAccountId"], back["SubAccountType"]) == ("search", "Team")
    assert back["Tags"] == '{"team": "search", "member": "ana", "source": "playground"}'
    assert (old["SubAccountId"], old["Tags"]) == ("", "{}")
    assert set(usage) == set(back) == set(COLUMNS)
    assert sum(Decimal(it["BilledCost"]) for it in (usage, back)) == Decimal("0.3")
    assert (usage["ChargePeriodStart"], usage["ChargePeriodEnd"]) == (
        "2026-11-21T00:00:00Z",
        "2026-11-22T00:00:00Z",
    )
    assert (usage["BillingPeriodStart"], usage["BillingPeriodEnd"]) == (
        "2026-11-01T00:00:00Z",
        "2026-12-01T00:00:00Z",
    )
    assert (usage["SubAccountId"], usage["Tags"]) == ("search", '{"team": "search", "env": "ci"}')
    assert (usage["ConsumedQuantity"], usage["PricingQuantity"]) == ("5", "4")
    [tried] = focus_rows("acme", [row("id1", "ci", "1", labels={"source": "playground"})], [])
    assert tried["Tags"] == '{"source": "playground"}'
    assert (back["ChargeCategory"], back["ConsumedUnit"]) == ("Adjustment", "")


def test_c67_showback_has_every_mandatory_column_of_the_version_that_it_states() -> None:
    """focus.finops.org/focus-specification/v1-2, feature level Mandatory, 2026-11-28."""
    mandatory = """
        BilledCost BillingAccountId BillingAccountName BillingCurrency BillingPeriodEnd
        BillingPeriodStart ChargeCategory ChargeClass ChargeDescription ChargePeriodEnd
        ChargePeriodStart ContractedCost EffectiveCost InvoiceIssuerName ListCost PricingQuantity
        PricingUnit ProviderName PublisherName ServiceCategory ServiceName
    """
    [usage] = focus_rows("acme", [row("id1", "ci", "1")], [])
    assert usage["x_FocusVersion"] == "1.2"
    assert set(mandatory.split()) - set(COLUMNS) == set()
    own = set(COLUMNS) - {"x_FocusVersion"}
    assert all(name[0].isupper() and name.isalnum() for name in own)


@pytest.mark.parametrize("category", ["Usage", "Adjustment"])
def test_c67_showback_has_no_null_where_focus_forbids_it(category: str) -> None:
    refund = {
        "type": "refund",
        "created_at": "2026-11-21T10:00:00Z",
        "amount": Decimal("0.2"),
        "generation_id": "gen-1",
        "refunded": None,
    }
    rows = {it["ChargeCategory"]: it for it in focus_rows("acme", [row("k", "", "1")], [refund])}
    nullable = {"BillingAccountName", "ChargeClass", "SubAccountId", "SubAccountName"}
    nullable |= {"SubAccountType", "Tags"}
    if category == "Adjustment":
        nullable |= {"ConsumedQuantity", "ConsumedUnit", "PricingQuantity", "PricingUnit"}
        nullable |= {"ResourceId", "ResourceName", "ResourceType"}
    assert [
        name for name, text in rows[category].items() if not text and name not in nullable
    ] == []
