"""Records survive the store exactly, and a usual one fits into one write unit.

Keeps C66.
"""

import string
from decimal import Decimal
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from tests.stores import RETENTION_S
from tollgate.aws.attributes import Item
from tollgate.core.ids import created_s, encode_id
from tollgate.core.records.generation import AttemptRecord, BillLine, GenerationRecord, RoutingTrace
from tollgate.core.request import Capability, Modality, PriceCeiling, RoutingPreferences
from tollgate.core.usage import Usage
from tollgate.stores.records.generations import read_record, record_item

USUAL = GenerationRecord(
    id=encode_id(bytes.fromhex("6b00e789") + bytes(range(7))),
    created_s=1795264201,
    workspace_id="acme-production",
    key_id=encode_id(bytes.fromhex("6b00e700") + bytes(range(100, 107))),
    outcome="ok",
    streamed=True,
    catalog_sha="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    trace=RoutingTrace(
        requested_model="smart",
        route="smart",
        rule=2,
        draw_key_hash="60303ae22b998861bce3b28f33eec1be",
        tier="gold",
        capabilities=("tools", "reasoning"),
        estimated_input_tokens=1234,
        output_tokens_max=4096,
        metadata={"team": "search"},
    ),
    model="openai/gpt-5-mini",
    provider="openai",
    upstream_model="gpt-5-mini-2025-08-07",
    upstream_id="chatcmpl-CgDNbZBQyGGkD5dvtnVYJb6vdwlFG",
    finish="stop",
    raw_finish="stop",
    usage=Usage(
        uncached_input_tokens=1200,
        cache_read_input_tokens=34,
        output_tokens=512,
        reasoning_tokens=120,
    ),
    usage_source="provider",
    cost_nano_usd=1_324_850,
    held_nano_usd=8_500_500,
    lines=(
        BillLine(
            item="input",
            quantity=1200,
            usd_per_million=Decimal("0.25"),
            cost_nano_usd=300_000,
        ),
        BillLine(
            item="cache_read",
            quantity=34,
            usd_per_million=Decimal("0.025"),
            cost_nano_usd=850,
        ),
        BillLine(
            item="output",
            quantity=512,
            usd_per_million=Decimal("2"),
            cost_nano_usd=1_024_000,
        ),
    ),
    attempts=(
        AttemptRecord(
            model="openai/gpt-5-mini", provider="openai", error=None, status=200, duration_ms=4210
        ),
    ),
    raw_usage={
        "prompt_tokens": 1234,
        "completion_tokens": 512,
        "total_tokens": 1746,
        "prompt_tokens_details": {"cached_tokens": 34, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 120,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    },
    duration_ms=4250,
    first_token_ms=812,
    client_request_id="3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    user="user-1234",
    api_gateway_request_id="9c1d2f43-77ab-4c1e-8a40-4f2b6a7c9d11",
    lambda_request_id="c6af9ac6-7b61-11e6-9a41-93e8deadbeef",
)


def item_bytes(item: Item) -> int:
    """The size DynamoDB bills.

    "DynamoDB item sizes and formats", developer guide (seen 2026-11-21): names and texts in UTF-8,
    numbers two digits a byte and one more, binary as it is before base64.
    """
    total = 0
    for name, value in item.items():
        total += len(name.encode())
        if "S" in value:
            total += len(value["S"].encode())
        elif "N" in value:
            total += len(value["N"]) // 2 + 2
        else:
            total += len(value["B"]) * 3 // 4
    return total


def test_a_generation_with_one_attempt_fits_into_one_kilobyte() -> None:
    assert item_bytes(record_item(USUAL, retention_s=RETENTION_S)) <= 1024


def test_what_is_queried_by_lies_beside_the_blob() -> None:
    item = record_item(USUAL, retention_s=RETENTION_S)

    assert item["pk"] == {"S": "W#acme-production#20261121"}
    assert item["sk"] == {"S": f"G#{USUAL.id}"}
    assert item["st"] == {"S": "ok"}
    assert item["c"] == {"N": "1324850"}
    assert item["ttl"] == {"N": str(created_s(USUAL.id) + RETENTION_S)}


short_text = st.text(max_size=12)
maybe_text = st.none() | short_text
count = st.integers(min_value=0, max_value=2**53)
maybe_count = st.none() | count
json_value = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | short_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(short_text, inner, max_size=3),
    max_leaves=8,
)
price = st.decimals(min_value=0, max_value=1000, places=7, allow_nan=False)
names = st.lists(short_text, max_size=3).map(tuple)


def some_of(names: object) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(get_args(names)), max_size=3).map(tuple)


preferences = st.builds(
    RoutingPreferences,
    models=names,
    order=names,
    fallbacks=st.booleans(),
    sort=st.sampled_from([None, "price"]),
    price_max=st.none() | st.builds(PriceCeiling, input=st.none() | price, output=price),
)
records = st.builds(
    GenerationRecord,
    id=st.binary(min_size=11, max_size=11).map(encode_id),
    created_s=count,
    workspace_id=st.text(string.ascii_letters, min_size=1, max_size=12),
    key_id=short_text,
    outcome=st.sampled_from(["ok", "error", "cancelled", "lost"]),
    streamed=st.booleans(),
    catalog_sha=short_text,
    trace=st.builds(
        RoutingTrace,
        requested_model=short_text,
        route=maybe_text,
        rule=maybe_count,
        draw_key_hash=short_text,
        tier=maybe_text,
        capabilities=some_of(Capability),
        estimated_input_tokens=count,
        output_tokens_max=maybe_count,
        metadata=st.dictionaries(short_text, short_text, max_size=3),
        modalities=some_of(Modality),
        preferences=st.none() | preferences,
        key_models=st.none() | names,
        level_models=st.tuples(names) | st.just(()),
        parameters=names,
        fallbacks=st.booleans(),
    ),
    model=maybe_text,
    provider=maybe_text,
    upstream_model=maybe_text,
    upstream_id=maybe_text,
    finish=st.sampled_from([None, "stop", "length", "tool_calls", "content_filter"]),
    raw_finish=maybe_text,
    error=maybe_text,
    usage=st.builds(Usage, **{field.name: maybe_count for field in fields(Usage)}),
    usage_source=st.sampled_from(["provider", "estimated", "bounded", "none"]),
    cost_nano_usd=count,
    held_nano_usd=count,
    lines=st.lists(
        st.builds(
            BillLine,
            item=short_text,
            quantity=count,
            usd_per_million=price,
            cost_nano_usd=count,
        ),
        max_size=3,
    ).map(tuple),
    attempts=st.lists(
        st.builds(
            AttemptRecord,
            model=short_text,
            provider=short_text,
            error=maybe_text,
            status=maybe_count,
            duration_ms=count,
            operator_cost_nano_usd=count,
        ),
        max_size=3,
    ).map(tuple),
    raw_usage=json_value,
    duration_ms=count,
    first_token_ms=maybe_count,
    client_request_id=maybe_text,
    user=maybe_text,
    api_gateway_request_id=maybe_text,
    lambda_request_id=maybe_text,
)


@given(records)
def test_c66_every_field_of_a_record_survives_exactly(record: GenerationRecord) -> None:
    assert read_record(record_item(record, retention_s=RETENTION_S)) == record


def test_a_record_without_model_has_no_such_attributes() -> None:
    item = record_item(replace(USUAL, model=None, provider=None), retention_s=RETENTION_S)

    assert {"m", "p"}.isdisjoint(item)
