"""Money at the edge, and paths.

Keeps C1, C26, C64.
"""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import fields
from pydantic import BaseModel, TypeAdapter

from tollgate.core.money.amounts import nano_usd, usd
from tollgate.core.records.generation import RoundsBound, RoutingTrace
from tollgate.core.request import PriceCeiling, RoutingPreferences
from tollgate.core.usage import Usage
from tollgate.web.http.paths import canonical_path
from tollgate.web.local_app import LocalApp
from tollgate.web.records.generation_shapes import (
    PreferencesObject,
    PriceCeilingObject,
    RoundsObject,
    TokensObject,
    TraceObject,
)
from tollgate.web.shapes import PositiveUsd, Usd

AMOUNTS = st.integers(min_value=1, max_value=10**15 - 1)
USD = TypeAdapter(Usd)
POSITIVE_USD = TypeAdapter(PositiveUsd)


@given(amount=AMOUNTS | st.just(0))
def test_c26_c64_a_json_amount_reads_back_to_the_nano_dollar(amount: int) -> None:
    written = USD.dump_json(usd(amount))
    assert nano_usd(Decimal(str(json.loads(written)))) == amount
    assert nano_usd(json.loads(written, parse_float=Decimal, parse_int=Decimal)) == amount


@given(amount=AMOUNTS)
def test_c64_an_amount_is_read_as_it_is_written(amount: int) -> None:
    number = POSITIVE_USD.validate_python(json.loads(USD.dump_json(usd(amount))))
    text = POSITIVE_USD.validate_python(str(usd(amount)))
    assert nano_usd(number) == nano_usd(text) == amount


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("/v1/key", "/v1/key"),
        ("/api/v1/key", "/v1/key"),
        ("/api/v1/key/", "/v1/key"),
        ("/v1/key///", "/v1/key"),
        ("/api/v1//key", "/v1/key"),
        ("//api///v1/key", "/v1/key"),
        ("//", "/"),
        ("/api/api/v1/key", "/api/v1/key"),
        ("/apiv1/key", "/apiv1/key"),
        ("/api", "/api"),
        ("/api/", "/"),
        ("/", "/"),
        ("", "/"),
    ],
)
def test_c1_a_path_has_one_canonical_spelling(path: str, canonical: str) -> None:
    assert canonical_path(path) == canonical


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ({"type": "http", "method": "POST", "path": "/api/v1/chat/completions/"}, "chat"),
        ({"type": "http", "method": "POST", "path": "/api/v1//chat/completions"}, "chat"),
        ({"type": "http", "method": "POST", "path": "/api/v1/videos"}, "chat"),
        ({"type": "http", "method": "GET", "path": "/api/v1/videos", "headers": []}, "api"),
        ({"type": "http", "path": "/v1/chat", "headers": []}, "api"),
        ({"type": "http", "path": "/api/v1/session"}, "login"),
        ({"type": "lifespan"}, "api"),
    ],
)
async def test_c1_the_local_server_joins_both_apps(scope: Any, expected: str) -> None:
    reached = []

    def app(name: str) -> object:
        async def called(*_: object) -> None:
            reached.append(name)

        return called

    await LocalApp(app("chat"), app("api"), login=app("login"))(scope, None, None)  # type: ignore[arg-type]
    assert reached == [expected]


@pytest.mark.parametrize(
    ("shown", "ours"),
    [
        (TokensObject, Usage),
        (TraceObject, RoutingTrace),
        (PreferencesObject, RoutingPreferences),
        (PriceCeilingObject, PriceCeiling),
        (RoundsObject, RoundsBound),
    ],
)
def test_c66_what_a_plan_reads_back_is_shown_with_every_field(
    shown: type[BaseModel], ours: type[Struct]
) -> None:
    assert list(shown.model_fields) == [field.name for field in fields(ours)]
