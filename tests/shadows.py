"""A house whose route `chat` has a shadow, with the workers of its runs."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace
from starlette.types import ASGIApp

from tests.asgi import Exchange, exchange
from tests.batches import MemoryLineRecords
from tests.gateways import Always, House, house
from tests.memory.batches import MemoryJobStore
from tests.scripted import Scripted
from tests.stores import funded_key
from tests.unit.routing.catalogs import catalog
from tollgate.core.clock import Deadline
from tollgate.core.principal import Principal
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.shadows import REST_S, ShadowRun
from tollgate.ingress.formats import FORMATS
from tollgate.routing.planning.planner import Planner
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.batches import BatchPlace, ShadowServices
from tollgate.web.chat_app import MeteredEndpoint, chat_app
from tollgate.web.generation.entrance import Entrance
from tollgate.web.http.cors import WebLimits
from tollgate.web.shadows.running import ShadowWorker, ShadowWorkerServices

KEPT = NewKey(
    workspace_id="acme", label="test", requests_per_minute=6000, burst=1000, content_days=7
)
FUNDS_NANO_USD = 10**9


class Contents:
    """Stored contents in memory, by workspace and generation."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str], bytes] = {}

    async def keep(
        self, workspace_id: str, generation_id: str, content: bytes, *, days: int
    ) -> None:
        self.stored[workspace_id, generation_id] = content

    async def get(
        self, workspace_id: str, generation_id: str, *, days: int | None = None
    ) -> bytes | None:
        return self.stored.get((workspace_id, generation_id))


class DistantRuns(MemoryJobStore[ShadowRun]):
    """A store whose answers arrive a second after they are read."""

    async def get(self, place: BatchPlace) -> ShadowRun | None:
        found = await super().get(place)
        await asyncio.sleep(1)
        return found


@dataclass
class Shadowed:
    """A gateway with a shadow. `near` serves callers and judges, `far` is the shadow."""

    home: House
    payer: Principal
    sections: dict[str, Any]
    contents: Contents = field(default_factory=Contents)
    store: MemoryJobStore[ShadowRun] = field(default_factory=DistantRuns)
    woken: list[BatchPlace] = field(default_factory=list)

    async def send(self, place: BatchPlace, *, delay_s: int = 0) -> None:
        assert delay_s > REST_S
        self.woken.append(place)

    @property
    def app(self) -> ASGIApp:
        return chat_app(
            self.home.front,
            Always(self.home.gateway),
            WebLimits(),
            contents=self.contents,
            shadows=lambda: ShadowServices(store=self.store, queue=self),
        )

    async def post(self, path: str, body: dict[str, Any], **headers: str) -> Exchange:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = exchange(
            "POST",
            path,
            headers={"authorization": f"Bearer {self.home.secret}", **named},
            body=json.dumps(body).encode(),
        )
        await sent.run(self.app)
        return sent

    async def ask(self, **fields: Any) -> Exchange:
        headers = fields.pop("headers", {})
        messages = [{"role": "user", "content": "Say hello."}]
        body = {"model": "chat", "messages": messages} | fields
        return await self.post("/v1/chat/completions", body, **headers)

    def shadow_by(self, **shadow: Any) -> None:
        """Serve another catalog, whose route has this shadow."""
        route = {
            "description": "Chat",
            "try": ("acme/large",),
            "shadow": {"model": "other/tools", "share": 100} | shadow,
        }
        sections = {"routes": {"chat": route}, "aliases": {}, **self.sections}
        self.home.catalog = catalog(**sections)
        self.home.gateway = replace(self.home.gateway, planner=Planner(self.home.catalog))

    def worker(self, **changes: Any) -> ShadowWorker:
        gateways = Always(self.home.gateway)
        entrance = Entrance(self.home.front, gateways, WebLimits(), responses=None)
        services = ShadowWorkerServices(
            store=self.store,
            records=MemoryLineRecords(self.home.stores.books),
            contents=self.contents,
            keys=self.home.stores.keys,
            gateways=gateways,
            endpoints={
                each.name: MeteredEndpoint(each, entrance, answers=None, contents=None)
                for each in FORMATS
            },
            ids=self.home.gateway.ids,
            clock=self.home.gateway.clock,
        )
        return ShadowWorker(replace(services, **changes))

    async def work(self, worker: ShadowWorker | None = None) -> None:
        """Run each run that a message names, as soon as it may begin."""
        clock, worker = self.home.gateway.clock, worker or self.worker()
        for place in self.woken:
            while (wait_s := await worker.work(place, Deadline.within(clock, 870.0))) is not None:
                await clock.sleep(wait_s)

    def records(self, workspace_id: str) -> list[GenerationRecord]:
        found = self.home.stores.books.records.items()
        return [record for (owner, _), record in found if owner == workspace_id]

    @property
    def shadows(self) -> list[GenerationRecord]:
        return self.records("ops")

    def spent_nano_usd(self, workspace_id: str) -> int:
        wallet = self.home.stores.books.wallets[workspace_id]
        assert not sum(wallet.holds.values())
        return wallet.spent


async def open_shadowed(
    near: Scripted | None = None,
    far: Scripted | None = None,
    *,
    key: NewKey = KEPT,
    funds_nano_usd: int = FUNDS_NANO_USD,
    share: int = 100,
    judge: str | None = None,
    **sections: Any,
) -> Shadowed:
    home = await house(near=near, far=far, key=key)
    new = replace(KEPT, workspace_id="ops", content_days=None)
    _, payer = await funded_key(home.stores, max(funds_nano_usd, 1), new)
    if not funds_nano_usd:
        home.stores.books.wallets["ops"].available = 0
    found = Shadowed(home, payer, sections)
    named = {} if judge is None else {"judge": judge}
    found.shadow_by(share=share, workspace="ops", key_id=payer.key_id, **named)
    return found
