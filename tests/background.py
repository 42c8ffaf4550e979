"""Background responses over a house of scripted providers: their callers and their workers."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace
from starlette.types import ASGIApp

from tests.asgi import Exchange, exchange, request
from tests.batches import Fate, MemoryLineRecords
from tests.gateways import Always, House, house
from tests.memory.batches import MemoryBackgroundParts, MemoryJobStore
from tests.memory.responses import MemoryResponses
from tests.memory.seal_keys import MemorySealKeys
from tests.scripted import Scripted
from tests.stores import TESTER
from tests.unit.web.test_api_app import Api
from tollgate.core.background import BackgroundResponse
from tollgate.core.clock import Deadline
from tollgate.core.ids import IdSource
from tollgate.core.records.generation import GenerationRecord
from tollgate.ingress.formats import RESPONSES
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.batches import BackgroundServices, BatchPlace
from tollgate.web.background.running import BackgroundWorker, WorkerServices
from tollgate.web.chat_app import MeteredEndpoint, chat_app
from tollgate.web.generation.entrance import Entrance
from tollgate.web.http.cors import WebLimits

PATH = "/v1/responses"


class Shelf:
    """Stored responses in memory."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}

    async def keep(
        self, workspace_id: str, generation_id: str, content: bytes, *, days: int
    ) -> None:
        self.contents[generation_id] = content

    async def get(
        self, workspace_id: str, generation_id: str, *, days: int | None = None
    ) -> bytes | None:
        return self.contents.get(generation_id)

    async def delete(self, workspace_id: str, generation_id: str) -> None:
        self.contents.pop(generation_id, None)


@dataclass
class Waiting:
    """A gateway with background responses, its two apps, and its workers."""

    home: House
    shelf: Shelf
    store: MemoryJobStore[BackgroundResponse]
    parts: MemoryBackgroundParts
    api: Api
    secret: str = ""
    woken: list[BatchPlace] = field(default_factory=list)
    is_woken: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, place: BatchPlace, *, delay_s: int = 0) -> None:
        self.woken.append(place)
        self.is_woken.set()

    @property
    def services(self) -> BackgroundServices:
        return BackgroundServices(store=self.store, parts=self.parts, queue=self)

    @property
    def app(self) -> ASGIApp:
        return chat_app(
            self.home.front,
            Always(self.home.gateway),
            WebLimits(),
            responses=self.shelf,
            seals=MemorySealKeys(self.home.gateway.ids),
            background=lambda: self.services,
        )

    def asked(self, *, secret: str | None = None, **fields: Any) -> Exchange:
        """A request that is not sent yet."""
        body = {"model": "acme/small", "input": "Say hello.", "background": True} | fields
        return exchange(
            "POST",
            PATH,
            headers={"authorization": f"Bearer {secret or self.secret}"},
            body=json.dumps(body).encode(),
        )

    async def ask(self, **fields: Any) -> Exchange:
        sent = self.asked(**fields)
        await asyncio.wait_for(sent.run(self.app), timeout=10_000)
        return sent

    async def call(
        self, method: str, path: str, *, key: str | None = None, **details: Any
    ) -> Exchange:
        headers = {"authorization": f"Bearer {key or self.secret}"}
        return await request(self.api.app, method, f"{PATH}/{path}", headers=headers, **details)

    async def key(self, workspace_id: str = "acme", **settings: Any) -> str:
        new = NewKey(
            workspace_id=workspace_id, **({"label": "stores", "response_days": 7} | settings)
        )
        return (await self.home.stores.keys.create(new, by=TESTER)).secret

    def worker(
        self,
        fate: Fate | None = None,
        *,
        background: BackgroundServices | None = None,
        records: Any = None,
        ledger: Any = None,
    ) -> BackgroundWorker:
        """One more process, which may have a fate, or other stores."""
        home, background = self.home, background or self.services
        gateway, records = home.gateway, records or MemoryLineRecords(home.stores.books)
        ledger = ledger or home.stores.ledger
        if fate is not None:
            gateway = replace(gateway, ledger=fate.over(gateway.ledger))
            background = replace(
                background, store=fate.over(self.store), parts=fate.over(self.parts)
            )
            records, ledger = fate.over(records), fate.over(ledger)
        entrance = Entrance(
            home.front, Always(gateway), WebLimits(), responses=self.shelf, seals=None
        )
        endpoint = MeteredEndpoint(RESPONSES, entrance, answers=None, contents=None)
        return BackgroundWorker(
            WorkerServices(
                background=background,
                records=records,
                ledger=ledger,
                keys=home.stores.keys,
                gateways=Always(gateway),
                endpoint=endpoint,
                ids=gateway.ids,
                clock=gateway.clock,
            )
        )

    async def run(
        self, id_: str, worker: BackgroundWorker | None = None, time_s: float = 10_000.0
    ) -> BackgroundResponse:
        """Work until the response has ended, or for so many seconds."""
        clock, worker = self.home.gateway.clock, worker or self.worker()
        end = Deadline.within(clock, time_s)
        while True:
            wait_s = await worker.work(BatchPlace("acme", id_), Deadline.within(clock, 870.0))
            if wait_s is None or end.remaining_s() <= wait_s:
                return await self.job(id_)
            await clock.sleep(wait_s)

    async def job(self, id_: str) -> BackgroundResponse:
        found = await self.store.get(BatchPlace("acme", id_))
        assert found is not None
        return found

    @property
    def records(self) -> list[GenerationRecord]:
        """The records of generations that count: those of dead workers are lost, at no cost."""
        found = self.home.stores.books.records.values()
        assert not any(each.cost_nano_usd for each in found if each.outcome == "lost")
        return [each for each in found if each.outcome != "lost"]


async def open_waiting(near: Scripted | None = None, **changes: Any) -> Waiting:
    home = await house(near=near, **changes)
    shelf, store = Shelf(), MemoryJobStore[BackgroundResponse]()
    parts = MemoryBackgroundParts(shelf)
    clock = home.gateway.clock
    api = Api(home, "", "", {})
    waiting = Waiting(home, shelf, store, parts, api)
    api.changes = {
        "responses": MemoryResponses(home.stores.books, shelf, clock),  # type: ignore[arg-type]
        "background": waiting.services,
        "ids": IdSource(clock),
    }
    waiting.secret = await waiting.key()
    return waiting


def events_of(body: bytes) -> list[dict[str, Any]]:
    """The events of a stream."""
    frames = [frame for frame in body.split(b"\n\n") if b"data: " in frame]
    return [json.loads(frame.partition(b"data: ")[2]) for frame in frames]
