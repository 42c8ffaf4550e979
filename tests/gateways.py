"""A gateway over memory stores and scripted providers, with eyes on everything it does."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Generic, TypeVar

from msgspec.structs import replace
from starlette.types import ASGIApp

from tests.scripted import Scripted, answers
from tests.stores import MemoryStores, Stores, funded_key, memory_stores
from tests.unit.routing.catalogs import catalog as small_catalog
from tests.virtual_time import LoopClock
from tests.watched_ledger import WatchedLedger
from tollgate.core.clock import Clock, Deadline, SystemClock
from tollgate.core.errors import ErrorCode, LedgerError, RequestError
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.core.records.generation import GenerationRecord
from tollgate.engine.gateway import Call, Gateway, StreamTiming
from tollgate.engine.generate import generate
from tollgate.engine.replies.kept_answers import AnswerStore
from tollgate.engine.replies.reply_sink import reply_sink
from tollgate.engine.replies.sink import ClientGone, EventSink
from tollgate.engine.side_thread import SideThread
from tollgate.ingress.chat_completions import ChatCompletions
from tollgate.ingress.formats import CHAT_COMPLETIONS, FORMATS
from tollgate.providers.ports.base import Codec, FetchedMedia, MediaFetcher, Provider
from tollgate.providers.ports.formats import WIRE_FORMATS, codec_of
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.planner import Planner
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.generation.entrance import RequestServices
from tollgate.web.http.cors import WebLimits

_Made = TypeVar("_Made")

FUNDS_NANO_USD = 10**12
# Seconds that a streamed generation has, when a test does not say.
TIME_S = 877.0


class RecordedJournal:
    """Keeps what it is told; `trace` says when."""

    def __init__(self, trace: list[str]) -> None:
        self.records: list[GenerationRecord] = []
        self.lost: list[tuple[GenerationRecord, Exception]] = []
        self.defects: list[tuple[Exception, str]] = []
        self.rests: list[str] = []
        self.kept: list[tuple[str, Exception, str]] = []
        self._trace = trace

    def settled(self, record: GenerationRecord) -> None:
        self.records.append(record)
        self._trace.append("journal")

    def unsettled(self, record: GenerationRecord, failure: Exception) -> None:
        self.lost.append((record, failure))

    def endpoint_cooled_down(self, endpoint_id: str) -> None:
        self.rests.append(endpoint_id)

    def catalog_rejected(self, what: str, failure: Exception, *, serving: str) -> None:
        self.kept.append((what, failure, serving))

    def unexpected_error(self, error: Exception, request_id: str) -> None:
        self.defects.append((error, request_id))


@dataclass
class RecordedReply:
    """A reply that is kept, each piece with its time.

    From piece `lost_at` on writes fail, with `broken` if it is there, and only one if it `mends`.
    """

    trace: list[str] = field(default_factory=list)
    lost_at: int | None = None
    broken: Exception | None = None
    mends: bool = False
    start_takes_s: float = 0.0
    write_takes_s: float = 0.0
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    pieces: list[tuple[float, bytes]] = field(default_factory=list)
    ended: bool = False
    _busy: bool = False

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        assert self.status is None, "a reply starts once"
        with self._alone():
            await asyncio.sleep(self.start_takes_s)
        self.status, self.headers = status, dict(headers)
        self.trace.append("status")

    async def write(self, body: bytes) -> None:
        await self._take(body)
        self.trace.append("write")

    async def end(self, body: bytes) -> None:
        await self._take(body)
        self.ended = True
        self.trace.append("end")

    async def abort(self) -> None:
        self.trace.append("abort")

    async def _take(self, body: bytes) -> None:
        assert self.status is not None, "a body comes after its status"
        assert not self.ended, "nothing comes after the end"
        with self._alone():
            if self.lost_at is not None and len(self.pieces) >= self.lost_at:
                self.lost_at = None if self.mends else self.lost_at
                raise self.broken or ClientGone
            await asyncio.sleep(self.write_takes_s)
        self.pieces.append((asyncio.get_running_loop().time(), body))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        assert not self._busy, "two writers at once"
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    @property
    def body(self) -> bytes:
        return b"".join(piece for _, piece in self.pieces)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """The error of an envelope, or of the last frame of a stream."""
        if self.headers["content-type"] == "application/json":
            return self.json["error"]
        assert self.body.endswith(b"\n\ndata: [DONE]\n\n"), self.body
        return json.loads(self.body.split(b"\n\n")[-3].splitlines()[-1][6:])["error"]

    def times_of(self, piece: bytes) -> list[float]:
        return [time_s for time_s, written in self.pieces if written == piece]


@dataclass(frozen=True)
class Directory:
    """Scripted providers, each behind its codec."""

    transports: Mapping[str, Scripted]
    codecs: Mapping[str, Codec]
    of_works: str = "openai_chat"

    def provider(self, slug: str, principal: Principal) -> Provider:
        own, works = (self.codecs[slug], self.transports[slug]), WIRE_FORMATS[self.of_works]
        return Provider(*own, works.batch_codecs, works.stream_codecs)


@dataclass
class ShelvedMedia:
    """Media by URL, each with the type that its server claims; `asked` are the URLs in order."""

    shelf: Mapping[str, FetchedMedia]
    asked: list[str] = field(default_factory=list)

    async def fetch(
        self, url: str, *, field: str = "messages", bytes_max: int = 0, buffered: object = None
    ) -> FetchedMedia:
        self.asked.append(url)
        if url not in self.shelf:
            raise RequestError(ErrorCode.INVALID_REQUEST, "It is not there.", param=field)
        return self.shelf[url]


@dataclass(frozen=True)
class Always(Generic[_Made]):
    """The same for every key."""

    made: _Made

    async def for_key(self, key_id: str | None) -> _Made:
        return self.made

    async def finish_loading(self) -> None:
        """Nothing goes on beside requests."""


@dataclass
class House:
    """A gateway with a funded key, and everything around it."""

    stores: MemoryStores
    ledger: WatchedLedger
    journal: RecordedJournal
    ingress: ChatCompletions
    catalog: Catalog
    gateway: Gateway
    near: Scripted
    far: Scripted
    trace: list[str]
    secret: str
    principal: Principal

    @property
    def front(self) -> RequestServices:
        gateway, stores = self.gateway, self.stores
        return RequestServices(
            keys=stores.keys,
            access_log=lambda: stores.access_log,
            ingresses={each.name: each.make()(gateway.ids) for each in FORMATS}
            | {CHAT_COMPLETIONS.name: self.ingress},
            clock=gateway.clock,
            ids=gateway.ids,
            journal=gateway.journal,
        )

    def call(
        self, name: str, *, stream: bool = True, time_s: float = TIME_S, **changes: Any
    ) -> Call:
        return Call(
            principal=self.principal,
            parsed=self.ingress.parse(request_body(name, stream=stream)),
            request_id=self.gateway.ids.new_id(),
            ingress_format=CHAT_COMPLETIONS.name,
            deadline=Deadline.within(self.gateway.clock, time_s),
            **changes,
        )

    def reply(self, **manners: Any) -> RecordedReply:
        return RecordedReply(trace=self.trace, **manners)

    def sink(self, call: Call, reply: RecordedReply) -> EventSink:
        return reply_sink(self.gateway, reply, self.ingress, call.parsed)

    async def serve(
        self, name: str = "acme/large", *, reply: RecordedReply | None = None, **changes: Any
    ) -> RecordedReply:
        """Generate to the end; what is refused before the hold is raised."""
        call = self.call(name, **changes)
        reply = reply or self.reply()
        await generate(self.gateway, call, self.sink(call, reply))
        return reply

    def begin(
        self, name: str = "acme/large", *, reply: RecordedReply, **changes: Any
    ) -> asyncio.Task[None]:
        """Generate in the background."""
        call = self.call(name, **changes)
        return asyncio.create_task(generate(self.gateway, call, self.sink(call, reply)))

    @property
    def record(self) -> GenerationRecord:
        """The one record that was kept; nothing is held or connected any more."""
        [record] = self.stores.books.records.values()
        assert self.held_nano_usd == 0
        assert self.near.open_count == self.far.open_count == 0
        return record

    @property
    def held_nano_usd(self) -> int:
        return sum(
            sum(held.holds.values())
            for held in (*self.stores.books.wallets.values(), *self.stores.books.keys.values())
        )

    @property
    def spent_nano_usd(self) -> int:
        return self.stores.books.wallets[self.principal.workspace_id].spent


async def house(
    *,
    near: Scripted | None = None,
    far: Scripted | None = None,
    codec: Codec | None = None,
    far_codec: Codec | None = None,
    timing: StreamTiming | None = None,
    media: MediaFetcher | None = None,
    funds_nano_usd: int = FUNDS_NANO_USD,
    key: NewKey | None = None,
    **sections: Any,
) -> House:
    """A gateway over the small catalog of the routing tests: `near` and `far` are its providers.

    Both speak `codec` unless `far` has one of its own.
    """
    clock = LoopClock()
    trace: list[str] = []
    stores = memory_stores(clock)
    secret, principal = await funded_key(stores, funds_nano_usd, key)
    ids = IdSource(clock)
    near, far = near or Scripted(answers("Hello")), far or Scripted(answers("Hi"))
    catalog = small_catalog(**sections)
    codec = codec or codec_of("openai_chat")
    works = [row.codec for slug, row in catalog.providers.items() if slug == "near"]
    ledger, journal = WatchedLedger(stores.ledger, trace), RecordedJournal(trace)
    gateway = Gateway(
        ledger=ledger,
        admissions=stores.admissions,
        cooldowns=stores.cooldowns,
        cooldown=catalog.defaults.cooldown.policy,
        planner=Planner(catalog),
        providers=Directory(
            {"near": near, "far": far}, {"near": codec, "far": far_codec or codec}, *works
        ),
        media=media or ShelvedMedia({}),
        clock=clock,
        ids=ids,
        journal=journal,
        timing=timing or StreamTiming(),
        side=SideThread(),
        credits_per_usd=Decimal(1),
    )
    return House(
        stores=stores,
        ledger=ledger,
        journal=journal,
        ingress=ChatCompletions(ids),
        catalog=catalog,
        gateway=gateway,
        near=near,
        far=far,
        trace=trace,
        secret=secret,
        principal=principal,
    )


def app_over_stores(
    home: House,
    stores: Stores,
    clock: Clock | None = None,
    *,
    answers: AnswerStore | None = None,
) -> ASGIApp:
    """The app of a house over other stores, by the real clock if not by another."""
    clock = clock or SystemClock()
    ids = IdSource(clock)
    gateway = replace(
        home.gateway,
        ledger=stores.ledger,
        admissions=stores.admissions,
        cooldowns=stores.cooldowns,
        clock=clock,
        ids=ids,
    )
    front = replace(home.front, keys=stores.keys, clock=clock, ids=ids)
    return chat_app(front, Always(gateway), WebLimits(), answers=answers)


def request_body(name: str = "acme/large", **fields: Any) -> bytes:
    """A small request."""
    messages = [{"role": "user", "content": "Say hello."}]
    return json.dumps({"model": name, "messages": messages, **fields}).encode()


def store_is_away() -> LedgerError:
    """What every store raises that cannot be reached."""
    return LedgerError(ErrorCode.SERVICE_UNAVAILABLE, "The store cannot be reached.")
