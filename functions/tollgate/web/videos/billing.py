"""Bills a video by the ordinary engine, which receives the provider's job as the answer."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.errors import (
    GatewayError,
    InternalError,
    LedgerError,
    OutcomeUnknown,
    UpstreamError,
)
from tollgate.core.events import ChosenGroup
from tollgate.core.ids import created_s
from tollgate.core.limits import SessionLimit, TierLimits
from tollgate.core.principal import Principal
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.work.video import VideoRequest
from tollgate.engine.batches.given_answers import AnsweredProviders, UnreportedEndpoints
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.generate import generate
from tollgate.ingress.base import ServedBy
from tollgate.providers.ports.base import Frame, ReadyRequest, Timeouts, WireRequest
from tollgate.routing.planning.batch_planner import BatchPlanner
from tollgate.stores.ports.base import Hold, Ledger
from tollgate.web.videos.starting import unmade_record


class VideoBill(Struct, frozen=True):
    """The record of a video, and the failure that this process has seen."""

    record: GenerationRecord
    failure: GatewayError


async def bill_video(
    gateway: Gateway,
    call: Call,
    hold: Hold,
    *,
    planner: BatchPlanner,
    ended: bytes | UpstreamError,
) -> VideoBill:
    """Settle a video's hold by the provider's last reply or by its failure.

    Repeating the call returns the first record. Raises LedgerError if it is not known whether the
    record could be written.
    """
    sink = _VideoSink()
    answered = replace(
        gateway,
        planner=planner,
        providers=AnsweredProviders(gateway.providers, _EndedJob(ended)),
        cooldowns=UnreportedEndpoints(),
        ledger=_HeldVideo(hold, gateway.ledger, gateway.clock.now_s),
        answer_cache=None,
    )
    work = call.parsed.request
    if isinstance(work, VideoRequest):
        # The provider has read the picture already.
        call = replace(call, parsed=replace(call.parsed, request=replace(work, reference=None)))
    try:
        await generate(answered, call, sink)
    except LedgerError:
        raise
    except GatewayError as refusal:
        # The endpoint was removed, for example, so that no attempt could be planned.
        record = await gateway.ledger.settle(hold, unmade_record(hold, refusal))
        return VideoBill(record, refusal)
    if sink.record is None or isinstance(sink.failure, OutcomeUnknown):
        raise sink.failure or OutcomeUnknown(hold.id)
    return VideoBill(sink.record, sink.failure or InternalError())


class _VideoSink:
    """Takes the record of a video."""

    def __init__(self) -> None:
        self.record: GenerationRecord | None = None
        self.failure: GatewayError | None = None

    def open(self, hold: Hold) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def begin(self, served: ServedBy) -> None:
        """Ignore the provider, which the record names."""

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        """Ignore the events, which the meter reads."""

    async def finish(self, record: GenerationRecord) -> None:
        self.record = record

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        self.failure, self.record = error, record


class _EndedJob(Struct, frozen=True):
    """A transport that sends nothing, and receives the last reply about a job."""

    ended: bytes | UpstreamError

    async def make_ready(self, request: WireRequest, timeouts: Timeouts) -> ReadyRequest:
        return ReadyRequest(lambda: self.open(request, timeouts), lambda: None)

    @asynccontextmanager
    async def open(
        self, request: WireRequest, timeouts: Timeouts
    ) -> AsyncIterator[AsyncIterator[Sequence[Frame]]]:
        if isinstance(self.ended, UpstreamError):
            raise self.ended
        yield self._frames(self.ended)

    async def _frames(self, reply: bytes) -> AsyncIterator[Sequence[Frame]]:
        yield (Frame(data=reply),)


class _HeldVideo(Struct, frozen=True):
    """The ledger of one video, whose money has been on hold since the request."""

    held: Hold
    ledger: Ledger
    now_s: Callable[[], float]

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
        """Return the hold; nothing is written."""
        return self.held

    def budget_left_percent(
        self, principal: Principal, *, tier: TierLimits | None = None
    ) -> int | None:
        return None

    async def top_up(self, hold: Hold, more_nano_usd: int) -> Hold:
        """Return the hold, which covers the price of the video."""
        return hold

    async def settle(self, hold: Hold, record: GenerationRecord) -> GenerationRecord:
        """Settle with the times of the whole video; a video that failed costs nothing."""
        began_s = created_s(hold.id)
        record = replace(
            record,
            created_s=began_s,
            duration_ms=int((self.now_s() - began_s) * 1_000),
            first_token_ms=None,
        )
        if record.outcome != "ok":
            record = replace(record, outcome="error", cost_nano_usd=0, lines=())
        return await self.ledger.settle(hold, record)
