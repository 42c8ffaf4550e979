"""Runs one line through the engine, and stores its answer before it is billed."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final

from msgspec import Raw, Struct, json
from msgspec.structs import replace

from tollgate.core.batches import Batch, Tally
from tollgate.core.clock import Deadline
from tollgate.core.errors import (
    ErrorCode,
    GatewayError,
    InternalError,
    LedgerError,
    OutcomeUnknown,
    RequestError,
)
from tollgate.core.events import ChosenGroup
from tollgate.core.limits import SessionLimit, TierLimits
from tollgate.core.principal import Principal
from tollgate.core.records.generation import GenerationRecord
from tollgate.engine.batches.lines import BatchLine
from tollgate.engine.batches.results import LineAnswer, LineResult
from tollgate.engine.batches.validation import LineParser
from tollgate.engine.generate import generate
from tollgate.engine.replies.reply_sink import reply_sink
from tollgate.engine.replies.sink import EventSink, Headers
from tollgate.ingress.base import ServedBy
from tollgate.stores.ports.base import Hold, Ledger
from tollgate.stores.ports.batches import BatchObjects
from tollgate.stores.rules.sweep import lost_generation

# Refusals and failures after which a line is tried again later, as an interactive client would.
WAITS_FOR: Final = frozenset(
    {
        ErrorCode.RATE_LIMIT_EXCEEDED,
        ErrorCode.SERVICE_UNAVAILABLE,
        ErrorCode.PROVIDER_RATE_LIMIT,
        ErrorCode.PROVIDER_OVERLOADED,
    }
)
_WAIT_S: Final = 5.0
_WAIT_MAX_S: Final = 300.0


class Waits(Struct, frozen=True):
    """A line without a result, which is worth another try after some seconds."""

    for_s: float


class Undecided(Struct, frozen=True):
    """A line that may or may not have been billed; the next try decides."""


LineOutcome = LineResult | Waits | Undecided
KeepAnswer = Callable[[GenerationRecord], Awaitable[None]]


class CollectedReply:
    """A reply that is collected in memory."""

    def __init__(self) -> None:
        self.status = 0
        self.body = b""

    async def start(self, status: int, headers: Headers) -> None:
        self.status = status

    async def write(self, body: bytes) -> None:
        self.body += body

    async def end(self, body: bytes) -> None:
        self.body += body

    async def abort(self) -> None:
        self.status, self.body = 0, b""

    @property
    def answer(self) -> LineAnswer:
        """The collected reply."""
        return LineAnswer(status=self.status, body=Raw(self.body))


class LineSink:
    """Sink of one line, which renders the whole reply as soon as the record is known."""

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink
        self._is_rendered = False
        self.failure: GatewayError | None = None
        self.record: GenerationRecord | None = None
        """The stored record; None until there is one."""

    def open(self, hold: Hold) -> AbstractAsyncContextManager[None]:
        return self._sink.open(hold)

    async def begin(self, served: ServedBy) -> None:
        await self._sink.begin(served)

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        await self._sink.send(events)

    async def render(self, record: GenerationRecord) -> None:
        """Render the reply of a successful generation, before it is settled."""
        await self._sink.finish(record)
        self._is_rendered = True

    async def finish(self, record: GenerationRecord) -> None:
        self.record = record

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        self.failure, self.record = error, record
        if not self._is_rendered:
            await self._sink.fail(error, record)


class LineLedger:
    """The ledger of one line: the hold has the line's id, and only a stored answer is billed."""

    def __init__(self, ledger: Ledger, keep: KeepAnswer) -> None:
        self._ledger = ledger
        self._keep = keep

    async def hold(
        self,
        principal: Principal,
        amount_nano_usd: int,
        first_id: str | None = None,
        *,
        tokens: int = 0,
        covered: bool = False,
        tier: TierLimits | None = None,
        session: SessionLimit | None = None,
        models: tuple[str, ...] = (),
        meanwhile: Callable[[], None] | None = None,
    ) -> Hold:
        """Hold money under exactly this id, by which the next try finds the generation."""
        hold = await self._ledger.hold(
            principal,
            amount_nano_usd,
            first_id,
            tokens=tokens,
            covered=covered,
            tier=tier,
            session=session,
            models=models,
            meanwhile=meanwhile,
        )
        if hold.id == first_id:
            return hold
        # A write under the line's id had an unknown outcome, and the ledger chose another id.
        record = lost_generation(
            hold.id, hold.workspace_id, hold.key_id, held_nano_usd=hold.wallet_nano_usd
        )
        await self._ledger.settle(hold, record)
        raise LedgerError(
            ErrorCode.SERVICE_UNAVAILABLE, "The hold of this line could not be confirmed."
        )

    def budget_left_percent(
        self, principal: Principal, *, tier: TierLimits | None = None
    ) -> int | None:
        return self._ledger.budget_left_percent(principal, tier=tier)

    async def top_up(self, hold: Hold, more_nano_usd: int) -> Hold:
        return await self._ledger.top_up(hold, more_nano_usd)

    async def settle(self, hold: Hold, record: GenerationRecord) -> GenerationRecord:
        """Store the answer, and then settle; a line that fails costs nothing."""
        if record.outcome == "ok":
            await self._keep(record)
        elif record.outcome == "cancelled":
            record = replace(record, outcome="error", cost_nano_usd=0, lines=())
        return await self._ledger.settle(hold, record)


class LineRun(Struct, frozen=True, kw_only=True):
    """The runner of the lines of one batch."""

    parser: LineParser
    objects: BatchObjects
    batch: Batch

    async def run(self, line: BatchLine, generation_id: str, deadline: Deadline) -> LineOutcome:
        """Run a line as one generation with this id, and return the outcome."""
        outcome = await self.serve(line, generation_id, deadline, make_ledger=self._ledger)
        return wait_after(outcome) if isinstance(outcome, GatewayError) else outcome

    async def serve(
        self,
        line: BatchLine,
        generation_id: str,
        deadline: Deadline,
        *,
        make_ledger: Callable[[KeepAnswer], Ledger],
    ) -> LineResult | Undecided | GatewayError:
        """Run a line as one generation; return a failure that may pass as it is, not as a result.

        `make_ledger` returns the ledger of the generation, which must keep the answer before it
        settles.
        """
        parser, gateway = self.parser, self.parser.gateway
        try:
            parsed = parser.parse(line)
            reply = CollectedReply()
            sink = LineSink(reply_sink(gateway, reply, parser.ingress, parsed))

            async def keep(record: GenerationRecord) -> None:
                await sink.render(record)
                await self._store(generation_id, reply.answer)

            billed = replace(gateway, ledger=make_ledger(keep))
            call = parser.call(parsed, generation_id, deadline=deadline, batch_id=self.batch.id)
            await generate(billed, call, sink)
        except GatewayError as refusal:
            if refusal.code in WAITS_FOR:
                return refusal
            return self.refused(line.custom_id, generation_id, refusal)
        except Exception as unexpected_error:
            gateway.journal.unexpected_error(unexpected_error, generation_id)
            return self.refused(line.custom_id, generation_id, InternalError())
        return await self._outcome(line, sink, reply)

    def _ledger(self, keep: KeepAnswer) -> Ledger:
        return LineLedger(self.parser.gateway.ledger, keep)

    async def _outcome(
        self, line: BatchLine, sink: LineSink, reply: CollectedReply
    ) -> LineResult | Undecided | GatewayError:
        record, failure = sink.record, sink.failure
        if record is None or record.outcome == "lost" or isinstance(failure, OutcomeUnknown):
            return Undecided()
        if failure is not None and failure.code in WAITS_FOR:
            return failure
        if failure is not None:
            await self._store(record.id, reply.answer)
        return _result(line.custom_id, record, reply.answer)

    def refused(self, custom_id: str, request_id: str, refusal: GatewayError) -> LineResult:
        """Return the result of a line that was refused, which costs nothing."""
        envelope = self.parser.ingress.error(refusal, request_id)
        return LineResult(
            custom_id=custom_id,
            request_id=request_id,
            answer=LineAnswer(status=envelope.status, body=Raw(envelope.body)),
            tally=Tally(failed=1),
        )

    async def recall(self, custom_id: str, record: GenerationRecord) -> LineResult | None:
        """Return the result of a line whose generation another worker has settled.

        Returns None if the generation did not end; the line must then run again.
        """
        if record.outcome != "ok" and (record.error is None or record.error in WAITS_FOR):
            return None
        content = await self.objects.get(self.batch, _answer_name(record.id))
        if content is not None:
            return _result(custom_id, record, json.decode(content, type=LineAnswer))
        code = ErrorCode(record.error) if record.error else ErrorCode.INTERNAL_ERROR
        failure = RequestError(code, "The worker that ran this line ended before it could report.")
        failed = self.refused(custom_id, record.id, failure)
        return replace(failed, tally=_tally(record))

    async def _store(self, generation_id: str, answer: LineAnswer) -> None:
        await self.objects.put(self.batch, _answer_name(generation_id), json.encode(answer))


def _answer_name(generation_id: str) -> str:
    """Return the name of a generation's answer among the intermediate results of its batch."""
    return f"answers/{generation_id}"


def wait_after(failure: GatewayError) -> Waits:
    """Return the time to wait after a refusal or a failure of WAITS_FOR."""
    return Waits(min(max(failure.retry_after_s or 0.0, _WAIT_S), _WAIT_MAX_S))


def _result(custom_id: str, record: GenerationRecord, answer: LineAnswer) -> LineResult:
    return LineResult(
        custom_id=custom_id, request_id=record.id, answer=answer, tally=_tally(record)
    )


def _tally(record: GenerationRecord) -> Tally:
    is_ok = record.outcome == "ok"
    return Tally(
        completed=int(is_ok),
        failed=int(not is_ok),
        input_tokens=record.usage.input_tokens if is_ok else 0,
        output_tokens=(record.usage.output_tokens or 0) if is_ok else 0,
        cost_nano_usd=record.cost_nano_usd,
    )
