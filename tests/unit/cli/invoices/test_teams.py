"""Comparison of AWS's bill with the records by team; the reports are invented.

Keeps C103.
"""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tollgate.cli.invoices.files import read_invoices
from tollgate.cli.invoices.lines import InvoiceRefused
from tollgate.cli.invoices.teams import TeamCompared, compare_teams

SESSION = "arn:aws:sts::123456789012:assumed-role/tollgate-BedrockRole-AB1/"
COLUMNS = (
    "line_item_usage_start_date,line_item_line_item_type,line_item_usage_type,"
    "line_item_currency_code,line_item_unblended_cost"
)


def report(*lines: tuple[str, str, str], kind: str = "Usage") -> str:
    """A report of usage types, principals and amounts."""
    rows = (
        f"2026-11-02T05:00:00.000Z,{kind},{name},USD,{usd},{principal}"
        for name, principal, usd in lines
    )
    return "\n".join((f"{COLUMNS},line_item_iam_principal", *rows, ""))


def recorded(team: str | None, usd: str, workspace: str = "acme") -> tuple[str, dict[str, Any]]:
    labels = {} if team is None else {"team": team}
    return workspace, {"labels": labels, "usage": Decimal(usd), "failed": 1}


def compared(folder: Path, text: str, *rows: tuple[str, dict[str, Any]]) -> list[TeamCompared]:
    path = folder / "report.csv"
    path.write_text(text)
    return compare_teams(read_invoices([path], by_principal=True).lines, rows)


def amounts(found: list[TeamCompared]) -> dict[str, tuple[str, str]]:
    return {
        f"{each.team}@{each.workspace}" if each.is_known else f"? {each.team}": (
            str(each.invoiced_usd),
            str(each.recorded_usd),
        )
        for each in found
    }


def test_each_team_has_what_aws_billed_beside_what_was_recorded(tmp_path: Path) -> None:
    text = report(
        ("USE1-Claude4.6Opus-input-tokens", f"{SESSION}red@acme", "0.25"),
        ("USE1-Claude4.6Opus-output-tokens", f"{SESSION}red@acme", "0.5"),
        # Usage without tokens belongs to a session, too.
        ("USE1-sd3-5-large-image", f"{SESSION}red@acme", "0.08"),
        ("USE1-Claude4.6Opus-input-tokens", f"{SESSION}red@other", "2"),
        ("USE1-Claude4.6Opus-input-tokens", f"{SESSION}@acme", "0.1"),
        ("USE1-Claude4.6Opus-input-tokens", f"{SESSION}gone@acme", "0.7"),
    )
    rows = [
        recorded("red", "0.8"),
        recorded("red", "0.03"),
        recorded("red", "1", "other"),
        recorded(None, "0.1"),
        recorded("idle", "0"),
    ]
    found = compared(tmp_path, text, *rows)
    assert amounts(found) == {
        "idle@acme": ("0", "0"),
        "no team@acme": ("0.1", "0.1"),
        "red@acme": ("0.83", "0.83"),
        "red@other": ("2", "1"),
        "? gone@acme": ("0.7", "0"),
    }
    bounds = (Decimal(1), Decimal("0.01"))
    assert [each.team for each in found if each.differs(*bounds)] == ["red", "gone@acme"]
    assert [each.failed for each in found] == [1, 1, 2, 1, 0]


def test_other_principals_are_one_sum_that_is_no_difference(tmp_path: Path) -> None:
    others = (
        "arn:aws:iam::123456789012:user/ana",
        # A person's session: its name has the form of a team's session, but the role is another.
        "arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Admin/ana@acme.org",
        "arn:aws:sts::123456789012:assumed-role/tollgate-ChatRole-CD2/tollgate-ChatFunction",
        "",
    )
    lines = [("USE1-Nova-input-tokens", principal, "1") for principal in others]
    text = report(("USE1-Nova-input-tokens", f"{SESSION}red@acme", "0.5"), *lines)
    text += "2026-11-02T05:00:00.000Z,Usage,USE1-BoxUsage:t3.micro,USD,9,\n"
    found = compared(tmp_path, text, recorded("red", "0.5"))
    assert amounts(found) == {"red@acme": ("0.5", "0.5"), "other principals@": ("4", "0")}
    assert found[-1].is_rest
    assert not any(each.differs(Decimal(0), Decimal(0)) for each in found)


FOCUS = (
    "BilledCost,BillingCurrency,ChargeCategory,ChargePeriodStart,ServiceCategory,SkuMeter\n"
    "1,USD,Usage,2026-11-02T05:00:00Z,AI and Machine Learning,USE1-Model\n"
)
JSON = '{"ResultsByTime": []}'


@pytest.mark.parametrize("text", [f"{COLUMNS}\n", FOCUS, JSON], ids=["CUR", "FOCUS", "JSON"])
def test_a_report_without_principals_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "report"
    path.write_text(text)
    with pytest.raises(InvoiceRefused) as refused:
        read_invoices([path], by_principal=True)
    assert str(refused.value) == (
        f"{path}: A comparison by team needs AWS's Cost and Usage Report 2.0 with the column "
        "line_item_iam_principal: let the export include IAM principals."
    )


def test_taxes_of_a_session_and_wrong_amounts_are_as_in_other_reports(tmp_path: Path) -> None:
    line = ("USE1-Nova-input-tokens", f"{SESSION}red@acme", "9")
    assert compared(tmp_path, report(line, kind="Tax"), recorded("red", "1"))[0].invoiced_usd == 0
    with pytest.raises(InvoiceRefused, match="line_item_unblended_cost is not an amount: 'x'"):
        compared(tmp_path, report((*line[:2], "x")))
