"""A key that is made in a tier.

Keeps C61.
"""

from typing import Any

import pytest

from tests.unit.web.test_api_app import api


@pytest.mark.parametrize(
    ("body", "rates"),
    [
        ({"tier": "fast"}, (1_000_000, 1_000_000)),
        ({"tier": "fast", "requests_per_minute": 5}, (5, 1_000_000)),
        ({"tier": "plain"}, (60, 120)),
        ({}, (60, 120)),
    ],
)
async def test_c61_a_key_without_a_rate_of_its_own_has_that_of_its_tier(
    body: dict[str, Any], rates: tuple[int, int]
) -> None:
    call = await api(key_tiers={"fast": {"rpm": 600}, "plain": {}})
    reply = await call("POST", "/v1/keys", key=call.management, content={"name": "new", **body})
    made = reply.json["data"]
    assert (made["requests_per_minute"], made["burst"]) == rates


@pytest.mark.parametrize(
    ("tiers", "known"), [({"fast": {}, "plain": {}}, "has fast, plain."), ({}, "has no tiers.")]
)
async def test_c61_an_unknown_tier_is_refused_with_those_that_exist(
    tiers: dict[str, Any], known: str
) -> None:
    call = await api(key_tiers=tiers)
    made = await call("POST", "/v1/keys", key=call.management, content={"name": "a"})
    key = f"/v1/keys/{made.json['data']['id']}"
    for method, path, body in (
        ("POST", "/v1/keys", {"name": "new", "tier": "nope"}),
        ("PATCH", key, {"tier": "nope"}),
    ):
        refused = await call(method, path, key=call.management, content=body)
        assert (refused.status, refused.error["param"]) == (400, "tier")
        assert refused.error["message"] == f"There is no tier 'nope'; the live catalog {known}"
    away = await call("PATCH", key, key=call.management, content={"tier": None, "name": "b"})
    assert away.status == 200
