"""Cells of a CSV table: plain values, which a program reads back.

Keeps C67.
"""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from tollgate.web.http.csv_columns import cell_text, csv_columns
from tollgate.web.keys.key_shapes import KeyObject


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (None, ""),
        (True, "true"),
        (1_234_567, "1234567"),
        (Decimal("1234567.890000000"), "1234567.89"),
        (Decimal("0E-9"), "0"),
        (Decimal("3.17E-7"), "0.000000317"),
        (datetime(2026, 11, 22, 7, 21, tzinfo=UTC), "2026-11-22T07:21:00Z"),
        ({"team": "search", "member": "ana"}, "member=ana;team=search"),
        ({"day": Decimal("5.00"), "total": Decimal(9)}, "day=5;total=9"),
        (["test/*", "acme/*"], "test/*;acme/*"),
    ],
)
def test_c67_a_cell_is_plain(value: object, cell: str) -> None:
    assert cell_text(value) == cell


def test_c67_what_no_cell_can_hold_is_in_the_json_alone() -> None:
    columns = csv_columns(KeyObject)
    assert {"id", "name", "limits", "limits_reset_at", "models", "labels", "tier"} <= set(columns)
    assert set(KeyObject.model_fields) - set(columns) == {*("holds", "old_secret", "quotas_usage")}


def test_the_columns_of_a_shape_are_found_once() -> None:
    # To look at each annotation again for each row takes five times as long as all else.
    assert csv_columns(KeyObject) is csv_columns(KeyObject)
