"""The published document tells the truth: a fuzzer that knows nothing else finds nothing untold.

Keeps C6, C40.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from msgspec.structs import replace
from schemathesis import Case, GenerationMode, checks
from starlette.types import ASGIApp

from tests.gateways import Always, house
from tests.memory.seal_keys import MemorySealKeys
from tests.pictures import data_url, png
from tests.stores import TESTER
from tests.unit.ingress.media_samples import b64
from tests.unit.ingress.recordings import wav
from tests.unit.web.served_api import LIMITS
from tests.unit.web.test_api_app import Api
from tollgate.core.clock import Clock
from tollgate.core.principal import Principal
from tollgate.ingress.formats import (
    CHAT_COMPLETIONS,
    COMPACT,
    COMPLETIONS,
    DECISIONS,
    EMBEDDINGS,
    IMAGE_EDITS,
    IMAGE_GENERATIONS,
    MESSAGES,
    MODERATIONS,
    RERANK,
    RESPONSES,
    SPEECH,
    TRANSCRIPTIONS,
    TRANSLATIONS,
    VIDEOS,
)
from tollgate.providers.ports.base import Provider
from tollgate.providers.ports.formats import WIRE_FORMATS, codec_of
from tollgate.providers.simulator.simulator import Simulator
from tollgate.routing.file.compile import canonical_json
from tollgate.routing.file.load import load
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.planner import Planner
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.http.paths import METERED_PATHS, STREAMING_PATHS
from tollgate.web.local_app import LocalApp

# The simulator answers each kind of work, whatever the fuzzer writes into a request.
MODELS = {
    CHAT_COMPLETIONS.path: "test/echo",
    COMPLETIONS.path: "test/echo",
    MESSAGES.path: "test/echo",
    RESPONSES.path: "test/echo",
    COMPACT.path: "test/echo",
    EMBEDDINGS.path: "test/embed",
    RERANK.path: "test/rerank",
    "/v1/v2/rerank": "test/rerank",
    MODERATIONS.path: "test/moderate",
    DECISIONS.path: "test/decide",
    IMAGE_GENERATIONS.path: "test/image",
    IMAGE_EDITS.path: "test/image",
    SPEECH.path: "test/speech",
    TRANSCRIPTIONS.path: "test/transcribe",
    TRANSLATIONS.path: "test/transcribe",
    VIDEOS.path: "test/video",
}
# What no fuzzer makes up: content of a type, in JSON and in a form.
RECORDED = wav(9)
CONTENT: Mapping[tuple[str, str | None], Mapping[str, Any]] = {
    (IMAGE_EDITS.path, "application/json"): {"images": [{"image_url": data_url(png())}]},
    (IMAGE_EDITS.path, "multipart/form-data"): {"image": [png()]},
    (TRANSCRIPTIONS.path, "application/json"): {"file": b64(RECORDED)},
    (TRANSCRIPTIONS.path, "multipart/form-data"): {"file": RECORDED},
    (TRANSLATIONS.path, "application/json"): {"file": b64(RECORDED)},
    (TRANSLATIONS.path, "multipart/form-data"): {"file": RECORDED},
}
SIMULATED = Catalog.from_json(
    canonical_json(load(Path(__file__).parents[2] / "infra/simulator.yaml"))
)
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
        simulated = replace(
            home.gateway, planner=Planner(SIMULATED), providers=Simulators(home.gateway.clock)
        )
        admin = NewKey(workspace_id="acme", label="admin", role="management")
        secret = (await home.stores.keys.create(admin, by=TESTER)).secret
        api = Api(home, secret, "").app
        seals = MemorySealKeys(home.gateway.ids)
        return (
            LocalApp(chat_app(home.front, Always(simulated), LIMITS, seals=seals), api),
            secret,
            home.secret,
        )

    return asyncio.run(start())


class Simulators:
    """The simulator behind each row of its file."""

    def __init__(self, clock: Clock) -> None:
        self._transport = Simulator(clock)

    def provider(self, slug: str, principal: Principal) -> Provider:
        name = SIMULATED.providers[slug].codec
        works = WIRE_FORMATS[name]
        return Provider(codec_of(name), self._transport, works.batch_codecs, works.stream_codecs)


def generates(path: str) -> bool:
    return path in STREAMING_PATHS


def name_a_model(case: Case) -> None:
    """Have a request planned and answered whole, whatever else it says.

    The document describes the data of events; a checker of streams wants the events themselves.
    """
    if isinstance(case.body, dict):
        for name in ("models", "stream_format", "url"):
            case.body.pop(name, None)
        served = MODELS.get(case.path) or MODELS[case.path.rpartition("/")[0]]
        for name, value in (("model", served), ("stream", False)):
            if isinstance(case.body.get(name), type(value)):
                case.body[name] = value
        for name, content in CONTENT.get((case.path, case.media_type), {}).items():
            if isinstance(case.body.get(name), type(content) | None):
                case.body[name] = content


def test_each_metered_route_has_a_model_to_be_fuzzed_with() -> None:
    assert MODELS.keys() == METERED_PATHS


@pytest.mark.nightly
@pytest.mark.parametrize("mode", GenerationMode)
def test_c6_a_fuzzer_finds_no_500_and_nothing_that_is_not_in_the_document(
    served: tuple[ASGIApp, str, str], mode: GenerationMode
) -> None:
    app, management, inference = served
    answered = Counter[str]()
    document = schemathesis.openapi.from_asgi("/v1/openapi.json", app)
    for operation in document.get_all_operations():
        # Making them costs two minutes with 20, ten times what answering them does.
        @settings(max_examples=12, suppress_health_check=list(HealthCheck))
        @given(case=operation.ok().as_strategy(generation_mode=mode))
        def answers_as_documented(case: Case) -> None:
            if generates(case.path):
                name_a_model(case)
            key = inference if generates(case.path) else management
            # A bearer counts before any other key, such as one that the fuzzer makes up.
            headers = {"authorization": f"Bearer {key}"}
            reply = case.call_and_validate(headers=headers, checks=CHECKS)
            answered[case.path] += reply.status_code == 200

        # Nothing can be wrong with a request that has no parts.
        with suppress(Unsatisfiable):
            answers_as_documented()
    if mode is GenerationMode.POSITIVE:
        # A route that only refuses has shown nothing of its replies. Videos need a bucket.
        assert {path for path in METERED_PATHS if not answered[path]} == {VIDEOS.path}
