"""Batches over a house of scripted providers: files, workers that die, and what they leave."""

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from inspect import iscoroutinefunction
from typing import Any

from msgspec.structs import replace

from tests.gateways import Always, House
from tests.memory.batches import MemoryBatchObjects, MemoryBatchStore
from tests.memory.books import MemoryBooks
from tollgate.core.batches import Batch
from tollgate.core.clock import Deadline
from tollgate.core.records.generation import GenerationRecord
from tollgate.engine.batches.worker import BatchServices, BatchWorker
from tollgate.stores.ports.batches import BatchPlace

CHAT = "/v1/chat/completions"
INPUT = "file-input"


class Died(BaseException):
    """What a worker's process dies of: no call of it reaches a store any more."""


class Fate:
    """What happens to a worker at one of its calls to stores, counted from 0.

    It dies before the call is applied, or after; or it freezes for a while, as a process does.
    """

    def __init__(self, at: int, *, applied: bool = False, freezes_s: float | None = None) -> None:
        self._at = at
        self._applied = applied
        self._freezes_s = freezes_s
        self._thaws_s = 0.0
        self.met = asyncio.Event()
        self.calls = 0
        self.is_dead = False

    def over(self, store: Any) -> Any:
        """The same store, whose calls this worker makes."""
        return _Mortal(store, self)

    async def call(self, method: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Make one call, or meet the fate."""
        number, self.calls = self.calls, self.calls + 1
        is_due, loop = number == self._at, asyncio.get_running_loop()
        if is_due and self._freezes_s is not None:
            self._thaws_s = loop.time() + self._freezes_s
            self.met.set()
        await asyncio.sleep(self._thaws_s - loop.time())
        dies = is_due and self._freezes_s is None
        if dies and not self._applied:
            self.is_dead = True
        if self.is_dead:
            raise Died
        made = await method(*args, **named)
        if dies:
            self.is_dead = True
            raise Died
        return made


class _Mortal:
    def __init__(self, store: Any, fate: Fate) -> None:
        self._store = store
        self._fate = fate

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        # A method that is not asynchronous calls no store.
        return partial(self._fate.call, method) if iscoroutinefunction(method) else method


class MemoryLineRecords:
    """Implements `stores.ports.batches.LineRecords` over books."""

    def __init__(self, books: MemoryBooks) -> None:
        self._books = books

    async def get(self, workspace_id: str, generation_id: str) -> GenerationRecord | None:
        return self._books.records.get((workspace_id, generation_id))

    async def decide(self, record: GenerationRecord) -> GenerationRecord:
        return self._books.records.setdefault((record.workspace_id, record.id), record)


def line(custom_id: str, model: str = "acme/large", **changes: Any) -> dict[str, Any]:
    """One request of a file."""
    body = {"model": model, "messages": [{"role": "user", "content": f"Say {custom_id}."}]}
    return {"custom_id": custom_id, "method": "POST", "url": CHAT, "body": body} | changes


def file_of(lines: Iterable[dict[str, Any]]) -> bytes:
    """The lines as a file."""
    return b"".join(json.dumps(each).encode() + b"\n" for each in lines)


@dataclass
class Works:
    """A batch of a house's key, and the stores that its workers share."""

    home: House
    store: MemoryBatchStore
    objects: MemoryBatchObjects
    place: BatchPlace

    @property
    def services(self) -> BatchServices:
        home = self.home
        return BatchServices(
            store=self.store,
            objects=self.objects,
            records=MemoryLineRecords(home.stores.books),
            ledger=home.stores.ledger,
            keys=home.stores.keys,
            gateways=Always(home.gateway),
            ingresses=home.front.ingresses,
            ids=home.gateway.ids,
            clock=home.gateway.clock,
        )

    def worker(self, lines_at_once: int = 8, fate: Fate | None = None) -> BatchWorker:
        """One more process, which may have a fate."""
        services = self.services
        if fate is not None:
            gateway = replace(self.home.gateway, ledger=fate.over(self.home.gateway.ledger))
            services = replace(
                services,
                store=fate.over(self.store),
                objects=fate.over(self.objects),
                records=fate.over(services.records),
                ledger=fate.over(services.ledger),
                gateways=Always(gateway),
            )
        return BatchWorker(services, lines_at_once=lines_at_once)

    async def run(self, worker: BatchWorker | None = None, time_s: float = 10_000.0) -> Batch:
        """Work until the batch has ended, or for so many seconds."""
        clock, worker = self.home.gateway.clock, worker or self.worker()
        deadline = Deadline.within(clock, time_s)
        while True:
            wait_s = await worker.work(self.place, deadline)
            if wait_s is None or deadline.remaining_s() <= wait_s:
                return await self.batch()
            await clock.sleep(wait_s)

    async def batch(self) -> Batch:
        found = await self.store.get(self.place)
        assert found is not None
        return found

    def lines(self, file_id: str | None) -> list[Any]:
        """The lines of a file with results."""
        if file_id is None:
            return []
        return [json.loads(each) for each in self.objects.files[file_id].splitlines()]

    @property
    def records(self) -> list[GenerationRecord]:
        """The records of generations that count: those of dead workers are lost, at no cost."""
        found = self.home.stores.books.records.values()
        assert not any(each.cost_nano_usd for each in found if each.outcome == "lost")
        return [each for each in found if each.outcome != "lost"]

    async def check_once(self, count: int) -> Batch:
        """Each line is once in the output, once among the records, and once on the bill."""
        batch = await self.batch()
        assert batch.status == "completed", batch
        output = self.lines(batch.output_file_id)
        assert [each["custom_id"] for each in output] == [f"n{n}" for n in range(count)]
        billed = {each.id: each.cost_nano_usd for each in self.records if each.outcome == "ok"}
        assert sorted(billed) == sorted(each["response"]["request_id"] for each in output)
        assert self.home.spent_nano_usd == sum(billed.values()) == batch.tally.cost_nano_usd
        assert batch.tally.completed == count
        return batch


async def batch_of(home: House, content: bytes | Iterable[dict[str, Any]], **changes: Any) -> Works:
    """Create a batch of these lines."""
    content = content if isinstance(content, bytes) else file_of(content)
    now_s = int(home.gateway.clock.now_s())
    batch = Batch(
        id=f"batch_{home.gateway.ids.new_id()}",
        workspace_id=home.principal.workspace_id,
        key_id=home.principal.key_id,
        endpoint=changes.pop("endpoint", CHAT),
        input_file_id=INPUT,
        times={"validating": now_s},
        expires_s=now_s + 86_400,
        **changes,
    )
    store = MemoryBatchStore()
    await store.create(batch)
    return Works(
        home=home,
        store=store,
        objects=MemoryBatchObjects({INPUT: content}),
        place=BatchPlace(batch.workspace_id, batch.id),
    )
