"""The published document tells the truth: a fuzzer that knows nothing else finds nothing untold.

Keeps C6, C40.
"""

import asyncio
from contextlib import suppress

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode, checks
from starlette.types import ASGIApp

from tests.gateways import Always, house
from tests.stores import TESTER
from tests.unit.web.served_api import LIMITS
from tests.unit.web.test_api_app import Api
from tollgate.stores.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.local_app import LocalApp
from tollgate.web.paths import STREAMING_PATHS

CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture(scope="module")
def served() -> tuple[ASGIApp, str, str]:
    """Both apps over one memory, a management key, and a key for generations."""

    async def start() -> tuple[ASGIApp, str, str]:
        home = await house()
        admin = NewKey(workspace_id="acme", label="admin", role="management")
        secret = (await home.stores.keys.create(admin, by=TESTER)).secret
        api = Api(home, secret, "").app
        return (
            LocalApp(chat_app(home.front, Always(home.gateway), LIMITS), api),
            secret,
            home.secret,
        )

    return asyncio.run(start())


def generates(path: str) -> bool:
    return path in STREAMING_PATHS


def name_a_model(case: Case) -> None:
    """Have a request planned and answered whole, whatever else it says.

    The document describes the data of events; a checker of streams wants the events themselves.
    """
    if isinstance(case.body, dict):
        case.body.pop("models", None)
        for name, value in (("model", "acme/large"), ("stream", False)):
            if isinstance(case.body.get(name), type(value)):
                case.body[name] = value


@pytest.mark.parametrize("mode", GenerationMode)
def test_c6_a_fuzzer_finds_no_500_and_nothing_that_is_not_in_the_document(
    served: tuple[ASGIApp, str, str], mode: GenerationMode
) -> None:
    app, management, inference = served
    document = schemathesis.openapi.from_asgi("/v1/openapi.json", app)
    for operation in document.get_all_operations():

        @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.ok().as_strategy(generation_mode=mode))
        def answers_as_documented(case: Case) -> None:
            if generates(case.path):
                name_a_model(case)
            key = inference if generates(case.path) else management
            # A bearer counts before any other key, such as one that the fuzzer makes up.
            headers = {"authorization": f"Bearer {key}"}
            case.call_and_validate(headers=headers, checks=CHECKS)

        # Nothing can be wrong with a request that has no parts.
        with suppress(Unsatisfiable):
            answers_as_documented()
