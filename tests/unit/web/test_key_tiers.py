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
