"""Collects the answer of a background response, and stores it before it is billed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from msgspec.structs import replace
from typing_extensions import override

from tollgate.core.background import BackgroundResponse
from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, GatewayError, LedgerError
from tollgate.core.events import ChosenGroup, ungroup
from tollgate.core.json_value import JsonObject
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import Fold
from tollgate.engine.batches.line_run import LineLedger
from tollgate.engine.gateway import Call, Gateway
from tollgate.ingress.base import ParsedCall, ServedBy
from tollgate.ingress.responses.render import ResponseRenderer
from tollgate.ingress.responses.stored import numbered
from tollgate.stores.ports.base import Hold, Ledger
from tollgate.stores.ports.batches import BackgroundParts
from tollgate.web.background.events import EventLog
from tollgate.web.records.response_storage import encode_readable


class BackgroundSink:
    """Folds the events of an answer into a response with the id that the caller has."""

    def __init__(
        self,
        job: BackgroundResponse,
        gateway: Gateway,
        call: Call,
        parsed: ParsedCall,
        *,
        log: EventLog | None,
        clock: Clock,
    ) -> None:
        self._job = job
        self._gateway = gateway
        self._call = call
        self._parsed = parsed
        self._log = log
        self._clock = clock
        self._fold = Fold()
        self._renderer: ResponseRenderer | None = None
        self.failure: GatewayError | None = None
        self.record: GenerationRecord | None = None
        """The stored record; None until there is one."""

    @asynccontextmanager
    async def open(self, hold: Hold) -> AsyncIterator[None]:
        if self._log is None:
            yield
            return
        storing = asyncio.create_task(self._log.run())
        try:
            yield
        finally:
            storing.cancel()
            with suppress(asyncio.CancelledError):
                await storing
            await self._log.flush()

    async def begin(self, served: ServedBy) -> None:
        named = replace(served, generation_id=self._job.bare_id, created_s=self._job.created_s)
        self._renderer = ResponseRenderer(
            self._parsed, named, credits_per_usd=self._gateway.credits_per_usd
        )

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        for _, event in events:
            self._fold.accept(event)
        if self._log is not None and self._renderer is not None:
            self._log.add(b"".join(self._renderer.feed(event) for _, event in ungroup(events)))

    async def render(self, record: GenerationRecord) -> bytes:
        """Return the answer as it is stored; raise LedgerError if it is too large for that."""
        renderer, response = self._renderer, self._fold.response()
        if renderer is None:
            raise RuntimeError("render() before begin()")
        items: Sequence[JsonObject] = self._parsed.stored_input or ()
        waited_ms = int((self._clock.now_s() - self._job.created_s) * 1_000)
        # The response shows when it ended; the record has the duration of the generation alone.
        shown = replace(record, duration_ms=max(record.duration_ms, waited_ms))

        def encode() -> bytes:
            return encode_readable(
                renderer.whole([response], shown),
                numbered(items, self._job.bare_id),
                owner=self._call.principal.owner,
            )

        return await self._gateway.computations(self._call).run(encode)

    async def finish(self, record: GenerationRecord) -> None:
        self.record = record

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        self.failure, self.record = error, record


class BackgroundLedger(LineLedger):
    """The ledger of one answer, which is billed only once it is stored.

    An answer that was cut short is billed if its caller cut it, or could read its events.
    """

    def __init__(
        self,
        ledger: Ledger,
        keep: Callable[[GenerationRecord], Awaitable[None]],
        is_delivered: Callable[[], bool],
    ) -> None:
        super().__init__(ledger, keep)
        self._billed_by = ledger
        self._store = keep
        self._is_delivered = is_delivered

    @override
    async def settle(self, hold: Hold, record: GenerationRecord) -> GenerationRecord:
        """Store a whole answer, and then settle."""
        if record.outcome == "ok":
            try:
                await self._store(record)
            except LedgerError as failure:
                if failure.code is not ErrorCode.PAYLOAD_TOO_LARGE:
                    raise
                record = unbilled(record, failure.code)
        elif record.outcome == "cancelled" and not self._is_delivered():
            record = unbilled(record)
        return await self._billed_by.settle(hold, record)


def unbilled(record: GenerationRecord, code: ErrorCode | None = None) -> GenerationRecord:
    """Return the record of an answer that failed, which costs nothing."""
    error = record.error if code is None else code.value
    return replace(record, outcome="error", error=error, cost_nano_usd=0, lines=())


def answer_name(generation_id: str) -> str:
    """Return the name of the part with the answer of one try."""
    return f"answers/{generation_id}"


async def store_answer(
    parts: BackgroundParts, job: BackgroundResponse, sink: BackgroundSink, record: GenerationRecord
) -> None:
    """Store the answer of a try, by which the next one finishes the response."""
    await parts.put(job, answer_name(record.id), await sink.render(record))
