"""What a change of routing says about secrets and about promises.

Keeps C53, C93.
"""

from datetime import date, timedelta
from typing import Any

import pytest

from tests.unit.routing.catalogs import RECENTLY, endpoint, model, provider, routing
from tollgate.routing.review.review import (
    BrokenPromise,
    SecretMove,
    find_differences,
    find_secret_moves,
)
from tollgate.routing.routing_file import Routing

KEY = {"env": "NEAR_API_KEY"}
HERE, THERE = "https://provider.example", "https://elsewhere.example"


def with_near(**row: Any) -> Routing:
    return routing(providers={"near": provider(key=KEY, **row), "far": provider()})


@pytest.mark.parametrize(
    ("base_url", "host"),
    [
        (f"{THERE}/v1", THERE),
        (f"{HERE}:8443/v1", f"{HERE}:8443"),
        ("http://provider.example/v1", "http://provider.example"),
    ],
)
def test_c93_a_known_key_that_goes_to_another_origin_is_a_move(base_url: str, host: str) -> None:
    (move,) = find_secret_moves(with_near(), with_near(base_url=base_url, private=True))
    assert move == SecretMove(
        secret="variable:NEAR_API_KEY", host=host, providers=("near",), hosts_before=(HERE,)
    )


def test_c93_another_path_of_the_same_origin_is_no_move() -> None:
    assert find_secret_moves(with_near(), with_near(base_url=f"{HERE}:443/v2")) == ()


def test_c53_a_promise_that_a_successor_breaks_later_is_told() -> None:
    today = date.fromisoformat(RECENTLY)
    dearer_on = today + timedelta(days=40)
    dearer = {"when": {"from": dearer_on}, "price": {"input": 9}}
    heir = model(endpoint("far", "new") | {"overrides": (dearer,)})

    def content(**old: Any) -> Routing:
        return routing(
            models={"acme/old": model(endpoint("near", "old"), **old), "acme/new": heir},
            aliases={},
            routes={
                "cheap": {
                    "description": "Cheap",
                    "try": ("acme/old",),
                    "promise": {"input_price_max": 1},
                }
            },
        )

    ends = {"retires": today + timedelta(days=20), "successor": "acme/new"}
    hands_on = content(**ends, after_retirement="successor")
    _, (broken,) = find_differences(content(), hands_on, today)
    assert isinstance(broken, BrokenPromise)
    assert (broken.route, broken.breaks.model, broken.breaks.day) == (
        "cheap",
        "acme/new",
        dearer_on,
    )
    _, none = find_differences(content(), content(**ends), today)
    assert none == ()
