"""What a request says about who should serve it.

Keeps C19, C20.
"""

from decimal import Decimal
from typing import Any

import pytest

from tests.unit.ingress.requests import body, refusal, understood
from tollgate.core.request import PriceCeiling, RoutingPreferences


def test_c19_wishes_about_who_serves_are_understood() -> None:
    parsed = understood(
        models=["a/b", "c/d"],
        session_id="s-1",
        provider={
            "order": ["Bedrock", "openai"],
            "only": ["openai"],
            "ignore": ["groq"],
            "allow_fallbacks": False,
            "require_parameters": True,
            "sort": "price",
            "max_price": {"prompt": 1.1, "completion": "2.50"},
        },
    )
    assert parsed.request.preferences == RoutingPreferences(
        models=("a/b", "c/d"),
        order=("bedrock", "openai"),
        only=("openai",),
        ignore=("groq",),
        fallbacks=False,
        require_parameters=True,
        sort="price",
        price_max=PriceCeiling(input=Decimal("1.1"), output=Decimal("2.50")),
        session_id="s-1",
    )
    assert parsed.ignored == ()


def test_c19_without_wishes_there_are_none() -> None:
    assert understood().request.preferences == RoutingPreferences()
    nothing = understood(models=None, provider=None, session_id=None)
    assert nothing.request.preferences == RoutingPreferences()
    assert understood(provider={}).request.preferences == RoutingPreferences()


def test_c20_wishes_that_have_no_effect_are_named() -> None:
    parsed = understood(
        provider={"sort": "price", "speed": "fast", "max_price": {"image": 1}, "order": None}
    )
    assert parsed.ignored == ("provider.speed", "provider.max_price.image")


@pytest.mark.parametrize(
    ("field", "value", "param"),
    [
        ("models", "a/b", "models"),
        ("models", ["a"] * 33, "models"),
        ("session_id", "", "session_id"),
        ("session_id", "s" * 257, "session_id"),
        ("provider", {"only": "openai"}, "provider.only"),
        ("provider", {"sort": "speed"}, "provider.sort"),
        ("provider", {"max_price": {"prompt": -1}}, "provider.max_price.prompt"),
        ("provider", {"max_price": {"prompt": "cheap"}}, "provider.max_price.prompt"),
        ("provider", {"max_price": {"prompt": True}}, "provider.max_price.prompt"),
        ("provider", {"max_price": {"prompt": "1e99"}}, "provider.max_price.prompt"),
        ("provider", {"max_price": {"prompt": "9" * 5_000}}, "provider.max_price.prompt"),
        ("provider", {"data_collection": "perhaps"}, "provider.data_collection"),
        ("provider", {"zdr": "yes"}, "provider.zdr"),
        ("provider", {"regions": ["Europe"]}, "provider.regions[0]"),
        ("provider", {"quantizations": ["fp8"]}, "provider.quantizations"),
    ],
)
def test_c19_wishes_that_cannot_be_kept_are_refused(field: str, value: Any, param: str) -> None:
    assert refusal(body(**{field: value})).param == param
