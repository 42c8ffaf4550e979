"""The template beside the last release's: an upgrade keeps every table, bucket and key.

Keeps C96.
"""

import json
from typing import Final

import pytest
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

from tests.local_server import ROOT
from tests.side_by_side.__main__ import RESOURCES
from tollgate.cli.upgrades.template_changes import (
    REPLACING,
    find_lost_data,
    list_template_changes,
    load_template,
)

TEMPLATE: Final = load_template((ROOT / "infra" / "template.yaml").read_text())
RELEASED: Final = json.loads(RESOURCES.read_text())


def test_c96_the_template_keeps_what_the_last_release_stores() -> None:
    assert list(find_lost_data(RELEASED, TEMPLATE)) == []


def test_the_last_release_states_all_that_stores_data() -> None:
    kept = {"CoreTable", "LedgerTable", "GenerationsTable", "ObjectsBucket", "SecretsKey"}
    for template in (RELEASED, TEMPLATE):
        assert {lost.partition(" ")[0] for lost in find_lost_data(template, {})} == kept


def test_the_template_is_read_whole() -> None:
    assert list(list_template_changes(TEMPLATE, TEMPLATE)) == []
    found = {it.title: it.lines for it in list_template_changes({}, TEMPLATE)}
    assert "+ POST /v1/chat/completions" in found["paths"]
    assert "+ ChatMemoryMb (default 512)" in found["parameters"]
    assert any(
        line.startswith("+ SweeperRole allow dynamodb:Scan") for line in found["permissions"]
    )


@pytest.mark.parametrize("kind", REPLACING)
def test_the_rows_have_every_property_that_aws_sets_once(kind: str) -> None:
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    stated = [
        *schema.get("createOnlyProperties", ()),
        *schema.get("conditionalCreateOnlyProperties", ()),
    ]
    assert {path.removeprefix("/properties/") for path in stated} <= REPLACING[kind]
