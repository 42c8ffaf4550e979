"""Rows in the FOCUS 1.2 format, which FinOps tools use to show the costs of teams.

https://focus.finops.org/focus-specification/v1-2 (2026-11-27). The columns are the mandatory ones,
and the conditional ones that activity can fill; `x_FocusVersion` states the version in the file. A
row is the usage of one key, model and provider on one UTC day, or a refund. The billing account is
the workspace, and the sub-account is the team.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from tollgate.cli.tables import as_json, exact
from tollgate.core.principal import PLAYGROUND, SOURCE_LABEL

_VERSION: Final = "1.2"
_GATEWAY: Final = "Tollgate"
COLUMNS: Final = (
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingAccountType",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "ServiceSubcategory",
    "SubAccountId",
    "SubAccountName",
    "SubAccountType",
    "Tags",
    "x_FocusVersion",
)


def focus_rows(
    workspace_id: str, activity: Iterable[Mapping[str, Any]], refunds: Iterable[Mapping[str, Any]]
) -> Iterator[dict[str, str]]:
    """Yield a row for each row of activity that a provider served, then one for each refund."""
    for row in activity:
        if row["provider_name"] is not None:
            day = date.fromisoformat(row["date"])
            yield _charge(workspace_id, day, row["usage"]) | _describe_usage(row)
    for entry in refunds:
        day = datetime.fromisoformat(entry["created_at"]).date()
        # Earlier releases did not return or store `refunded`, so it may be missing.
        refunded = entry.get("refunded") or {}
        labels = {name: refunded[name] for name in ("team", "member") if refunded.get(name)}
        if refunded.get("source") == PLAYGROUND:
            labels[SOURCE_LABEL] = PLAYGROUND
        yield _charge(workspace_id, day, -Decimal(entry["amount"])) | {
            "ChargeCategory": "Adjustment",
            "ChargeDescription": f"Refund of {entry['generation_id']}",
            "ChargeFrequency": "One-Time",
            "InvoiceIssuerName": _GATEWAY,
            "ProviderName": _GATEWAY,
            "PublisherName": _GATEWAY,
            "ServiceName": "Refund",
            **_describe_labels(labels),
        }


def _charge(workspace_id: str, day: date, usd: Any) -> dict[str, str]:
    """Return the columns that usage and refunds share."""
    first = day.replace(day=1)
    return {
        **dict.fromkeys(COLUMNS, ""),
        **dict.fromkeys(("BilledCost", "ContractedCost", "EffectiveCost", "ListCost"), exact(usd)),
        "BillingAccountId": workspace_id,
        "BillingAccountName": workspace_id,
        "BillingAccountType": "Workspace",
        "BillingCurrency": "USD",
        "BillingPeriodStart": _moment(first),
        "BillingPeriodEnd": _moment((first + timedelta(days=31)).replace(day=1)),
        "ChargePeriodStart": _moment(day),
        "ChargePeriodEnd": _moment(day + timedelta(days=1)),
        "ServiceCategory": "AI and Machine Learning",
        "ServiceSubcategory": "Generative AI",
        "x_FocusVersion": _VERSION,
    }


def _describe_usage(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "ChargeCategory": "Usage",
        "ChargeDescription": f"{row['model']} by {row['key_name'] or row['key_id']}",
        "ChargeFrequency": "Usage-Based",
        "ConsumedQuantity": str(row["prompt_tokens"] + row["completion_tokens"]),
        "ConsumedUnit": "Tokens",
        "InvoiceIssuerName": row["provider_name"],
        "PricingQuantity": str(row["requests"]),
        "PricingUnit": "Requests",
        "ProviderName": row["provider_name"],
        "PublisherName": row["model"].partition("/")[0],
        "ResourceId": row["key_id"],
        "ResourceName": row["key_name"] or row["key_id"],
        "ResourceType": "API key",
        "ServiceName": row["model"],
        **_describe_labels(row["labels"]),
    }


def _describe_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the columns for the team, and for all labels as tags."""
    team = labels.get("team", "")
    return {
        "SubAccountId": team,
        "SubAccountName": team,
        "SubAccountType": "Team" if team else "",
        "Tags": as_json(labels, indent=None),
    }


def _moment(day: date) -> str:
    return f"{day}T00:00:00Z"
