"""Tools of the gateway that play their part as written, for a gateway with scripted providers."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from tests.gateways import House, RecordedReply, house
from tests.scripted import Scripted, Silence, Step, ends, frame
from tests.upstream.openai_chunks import call_delta, chunk
from tollgate.core.content import Text
from tollgate.core.events import Chosen, StreamEvent, StreamGrammar
from tollgate.core.principal import Principal
from tollgate.core.records.generation import Fee
from tollgate.core.request import GenerationRequest, Tool
from tollgate.core.response import Fold, GenerationResponse
from tollgate.core.server_tools import RunResult, ServerTool, Source
from tollgate.engine.gateway import Call
from tollgate.engine.generate import generate
from tollgate.engine.replies.sink import EventSink
from tollgate.tools.ports.base import RunReport, ToolBound

SEARCH = ServerTool(id="web_search")
FETCH = ServerTool(id="web_fetch")
PRICE = Decimal("0.008")
PAGE = Source(url="https://news.example/a", title="A page", text="It rains.")
QUERY = '{"query": "weather"}'
_SCHEMA = {
    "web_search": {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
    },
    "web_fetch": {
        "type": "object",
        "properties": {"url": {"type": "string"}},
        "required": ["url"],
    },
}


def found(text: str = "It rains.", *sources: Source) -> RunReport:
    """The report of a search that found a text, at a price."""
    return RunReport(
        result=RunResult(content=(Text(text=text),), sources=sources or (PAGE,)),
        engine="scripted",
        fees=(Fee(item="web_search", quantity=1, usd_each=PRICE),),
    )


Outcome = RunReport | Silence | Exception


@dataclass
class ScriptedTools:
    """Runs each call as the next step says, and the last one again for all that follow.

    A silence is followed by a search that found something. `most` are at work at a time.
    """

    steps: Sequence[Outcome] = (found(),)
    uses_max: int = 5
    configured: tuple[str, ...] = ("web_search", "web_fetch")
    ran: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)
    routes: list[str | None] = field(default_factory=list)
    by_provider: bool = False
    now: int = 0
    most: int = 0

    def open(
        self, request: GenerationRequest, *, route: str | None, principal: Principal
    ) -> "ScriptedTools":
        self.routes.append(route)
        return self

    def declare(self, tool: ServerTool) -> Tool | None:
        if tool.id not in self.configured:
            return None
        return Tool(name=tool.id, description="A tool.", parameters=_SCHEMA[tool.id])

    def bound(self, tool: ServerTool) -> ToolBound:
        return ToolBound(
            engine="scripted",
            uses_max=self.uses_max,
            fees_nano_usd=self.uses_max * int(PRICE * 1_000_000_000),
            result_tokens=1_000,
        )

    def native(self, tool: ServerTool) -> ServerTool | None:
        return replace(tool, by_provider=True, uses_max=self.uses_max) if self.by_provider else None

    async def run(
        self, tool: ServerTool, arguments: Mapping[str, object], *, remaining_s: float
    ) -> RunReport:
        self.ran.append((tool.id, arguments))
        step = self.steps[min(len(self.ran), len(self.steps)) - 1]
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(step.duration_s if isinstance(step, Silence) else 0)
        finally:
            self.now -= 1
        if isinstance(step, Exception):
            raise step
        return found() if isinstance(step, Silence) else step


def asks(*calls: tuple[str, str], said: str = "", prompt: int = 10) -> list[Step]:
    """A whole answer that calls tools: each with its name and its arguments."""
    begun = [frame(chunk({"role": "assistant", "content": said or None}))]
    for index, (name, arguments) in enumerate(calls):
        delta = call_delta(
            index=index, id_=f"call-{index + 1}", name=name, arguments=arguments, type_="function"
        )
        begun.append(frame(chunk({"tool_calls": [delta]})))
    return [*begun, *ends("tool_calls")]


async def tooled(tools: ScriptedTools | None = None, **changes: Any) -> House:
    """A house whose gateway runs scripted tools."""
    home = await house(**changes)
    home.gateway = replace(home.gateway, tools=tools or ScriptedTools())
    return home


def with_tools(home: House, *tools: ServerTool, stream: bool = True, **changes: Any) -> Call:
    """A call whose request has tools of the gateway's; `changes` are of the request."""
    name = changes.pop("name", "acme/large")
    time_s = changes.pop("time_s", 877.0)
    call = home.call(name, stream=stream, time_s=time_s)
    request = replace(call.parsed.request, server_tools=tools or (SEARCH,), **changes)
    return replace(call, parsed=replace(call.parsed, request=request))


async def answered(
    home: House, call: Call, *, sink: EventSink | None = None, **manners: Any
) -> RecordedReply:
    """The reply to a call."""
    reply = home.reply(**manners)
    await generate(home.gateway, call, sink or home.sink(call, reply))
    return reply


def sent(provider: Scripted, number: int) -> Any:
    """The body of a provider's request, from 0."""
    return provider.requests[number].body


class Listener:
    """A sink that keeps events, and folds them as a reply would."""

    def __init__(self, home: House, call: object) -> None:
        self._inner = home.sink(call, home.reply())  # type: ignore[arg-type]
        self.events: list[StreamEvent] = []
        self.grammar = StreamGrammar()
        self._fold = Fold()

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    async def send(self, together: Sequence[Chosen]) -> None:
        for _, event in together:
            self.grammar.accept(event)
            self.events.append(event)
            self._fold.accept(event)
        await self._inner.send(together)

    @property
    def whole(self) -> GenerationResponse:
        return self._fold.response()


async def heard(home: House, *tools: ServerTool, **changes: object) -> Listener:
    """What a generation with tools says, event by event."""
    call = with_tools(home, *tools, **changes)  # type: ignore[arg-type]
    listener = Listener(home, call)
    await generate(home.gateway, call, listener)  # type: ignore[arg-type]
    return listener


def errors_of(whole: GenerationResponse) -> list[str | None]:
    """The error of each run, in the order of their parts."""
    notes = [note for place in sorted(whole.notes) for note in whole.notes[place]]
    return [note.error for note in notes if isinstance(note, RunResult)]
