"""Tools over engines, pages and secrets that a test scripts: no socket, no clock."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from tests.clocks import FixedClock
from tollgate.core.content import InlineMedia, MadeImage, Text
from tollgate.core.documents.reading import DocumentPage, ReadDocument, ReadingShare, ReadingTask
from tollgate.core.principal import Principal
from tollgate.core.records.generation import Fee
from tollgate.core.request import GenerationRequest, UserMessage
from tollgate.core.secret import CredentialPlace, SecretReference
from tollgate.core.server_tools import RunResult, ServerTool
from tollgate.core.work.images import ImageRequest
from tollgate.http1.egress import Fetched
from tollgate.routing.chains import RouteSection
from tollgate.routing.tool_sections import ServerToolsSection
from tollgate.tools.configured import ConfiguredTools, ToolServices
from tollgate.tools.ports.base import (
    EngineRequest,
    PageLimits,
    Painted,
    RequestTools,
    RunFailure,
)

KEY = "tvly-very-secret"
PRINCIPAL = Principal(key_id="key_1", workspace_id="ws_1", role="inference", label="test")
PRICE = {"call": "0.008", "source": "made up", "checked": "2026-11-22"}
SECTION: dict[str, Any] = {
    "web_search": {"engine": "tavily", "key": {"env": "TAVILY_API_KEY"}, "price": PRICE},
    "web_fetch": {"price": {**PRICE, "call": "0.001"}},
    "datetime": {"timezone": "Europe/Berlin"},
    "image": {"model": "acme/painter"},
}


class ScriptedEngine:
    """Answers each search with the next body, or raises it."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self.requests: list[EngineRequest] = []
        self.timeouts_s: list[float] = []
        self._answers = list(answers)

    async def exchange(
        self, engine: str, request: EngineRequest, *, bytes_max: int, timeout_s: float
    ) -> bytes:
        self.requests.append(request)
        self.timeouts_s.append(timeout_s)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class ScriptedPages:
    """Pages by address, without a network."""

    def __init__(self, pages: Mapping[str, Fetched]) -> None:
        self.fetched: list[str] = []
        self.limits: list[PageLimits] = []
        self._pages = pages

    async def fetch_page(self, url: str, limits: PageLimits) -> Fetched:
        self.fetched.append(url)
        self.limits.append(limits)
        if url not in self._pages:
            raise RunFailure("url_not_accessible", "the page could not be fetched")
        return self._pages[url]


class ScriptedReader:
    """Reads a page as one text, in capitals."""

    def __init__(self) -> None:
        self.tasks: list[ReadingTask] = []
        self.hangs = False

    async def read(
        self, content: bytes, media_type: str, task: ReadingTask, share: ReadingShare
    ) -> ReadDocument:
        self.tasks.append(task)
        if self.hangs:
            await asyncio.Event().wait()
        page = DocumentPage(number=1, text=content.decode().upper())
        return ReadDocument(pages=(page,), pages_total=1, title=media_type)


class ScriptedPainter:
    """Makes a picture of nothing, for four cents and some tokens."""

    def __init__(self) -> None:
        self.works: list[ImageRequest] = []

    def fees_max_nano_usd(self, work: ImageRequest, principal: Principal) -> int:
        return 50_000_000

    async def paint(self, work: ImageRequest, principal: Principal, *, timeout_s: float) -> Painted:
        self.works.append(work)
        picture = MadeImage(source=InlineMedia(media_type="image/png", base64="AAAA"))
        fee = Fee(item="image_model_image", quantity=1, usd_each=Decimal("0.04"))
        return Painted(images=(picture,), fees=(fee,))


class ScriptedSecrets:
    """The environment of a test."""

    def __init__(self, **values: str) -> None:
        self._values = values

    async def read(self, reference: SecretReference) -> str | None:
        return self._values.get(reference.env or "")

    def place(self, reference: SecretReference) -> CredentialPlace:
        return CredentialPlace(variables=(reference.env or "",))


class Toolbox:
    """The tools of one request, over services that a test reads afterwards."""

    def __init__(
        self,
        *tools: ServerTool,
        section: Mapping[str, Any] = SECTION,
        said: str = "",
        answers: Sequence[bytes | Exception] = (),
        pages: Mapping[str, Fetched] | None = None,
        route: RouteSection | None = None,
        key: str = KEY,
        reads: bool = True,
    ) -> None:
        self.engine = ScriptedEngine(*answers)
        self.pages = ScriptedPages(pages or {})
        self.reader = ScriptedReader()
        self.painter = ScriptedPainter()
        self.clock = FixedClock()
        request = GenerationRequest(
            model="m", messages=(UserMessage(content=(Text(text=said),)),), server_tools=tools
        )
        configured = ConfiguredTools(
            section=ServerToolsSection.model_validate_json(_json(section), strict=True),
            routes={} if route is None else {"smart": route},
            painter=self.painter,
            services=ToolServices(
                calls=self.engine,
                pages=self.pages,
                reader=self.reader if reads else None,
                secrets=ScriptedSecrets(TAVILY_API_KEY=key),
                clock=self.clock,
            ),
        )
        self.tools: RequestTools = configured.open(
            request, route=None if route is None else "smart", principal=PRINCIPAL
        )


def _json(section: Mapping[str, Any]) -> bytes:

    return json.dumps(section).encode()


def text_of(result: RunResult) -> str:
    """Return what the model is given."""
    (part,) = result.content
    assert isinstance(part, Text)
    return part.text
