"""Values that the tests of Responses share."""

import json
from decimal import Decimal
from typing import Any

import httpx2
import openai

from tests.clocks import FixedClock
from tests.unit.ingress.samples import SERVED
from tollgate.core.content import Part, Provenance
from tollgate.core.events import PartDelta, PartEnd, PartStart, StreamEvent
from tollgate.core.ids import IdSource
from tollgate.ingress.responses import Responses
from tollgate.ingress.responses.parse import parse_response_object
from tollgate.ingress.responses.render import ResponseRenderer
from tollgate.ingress.responses.stored import StoredTurns

FORMAT = Responses(IdSource(FixedClock(), entropy=lambda size: bytes(range(size))))
ASKED = {"model": "test/echo", "input": "Hi"}


def renderer(**asked: Any) -> ResponseRenderer:
    call = FORMAT.parse(json.dumps(ASKED | asked).encode())
    return FORMAT.renderer(call, SERVED, credits_per_usd=Decimal(1))


def storing_renderer() -> ResponseRenderer:
    """A renderer of a response that is stored."""
    call = parse_response_object(ASKED, {}, size_bytes=1, turns=StoredTurns())
    return FORMAT.renderer(call, SERVED, credits_per_usd=Decimal(1))


def life(index: int, part: Part, *texts: str, ended: Provenance | None = None) -> list[StreamEvent]:
    deltas = [PartDelta(index=index, text=text) for text in texts]
    return [PartStart(index=index, part=part), *deltas, PartEnd(index=index, provenance=ended)]


class Replay:
    """An OpenAI client whose server answers with the bytes it was given."""

    def __init__(self, body: bytes, content_type: str) -> None:
        self._reply = (body, content_type)
        self.client = openai.OpenAI(
            api_key="sk-tg-test",
            base_url="http://replay.invalid/v1",
            max_retries=0,
            http_client=httpx2.Client(transport=httpx2.MockTransport(self._answer)),
        )

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        body, content_type = self._reply
        return httpx2.Response(200, content=body, headers={"content-type": content_type})
