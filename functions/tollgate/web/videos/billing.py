"""Bills a video with the ordinary engine, to which the provider's last reply is the answer."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

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
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.work.video import VideoRequest
from tollgate.engine.batches.provider_answers import (
    GivenAnswer,
    HeldPart,
    with_answer,
    without_rules,
)
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.generate import generate
from tollgate.ingress.base import ServedBy
from tollgate.routing.planning.batch_planner import BatchPlanner
from tollgate.stores.ports.base import Hold, Ledger
from tollgate.web.videos.starting import unmade_record

_OK: Final = 200


class VideoBill(Struct, frozen=True):
    """The record of a video, and the error if this process saw the video fail."""

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
    answer = ended if isinstance(ended, UpstreamError) else GivenAnswer(_OK, ended)
    answered = replace(
        with_answer(gateway, planner, answer),
        ledger=_HeldVideo(hold, gateway.ledger, gateway.clock.now_s),
        answer_cache=None,
    )
    work = call.parsed.request
    call = replace(call, principal=without_rules(call.principal))
    if isinstance(work, VideoRequest):
        # The picture is not needed any more, because the provider has read it.
        call = replace(call, parsed=replace(call.parsed, request=replace(work, reference=None)))
    try:
        await generate(answered, call, sink)
    except LedgerError:
        raise
    except GatewayError as refusal:
        # No attempt could be planned, for example because the endpoint was removed.
        record = await gateway.ledger.settle(hold, unmade_record(hold, refusal))
        return VideoBill(record, refusal)
    if sink.record is None or isinstance(sink.failure, OutcomeUnknown):
        raise sink.failure or OutcomeUnknown(hold.id)
    return VideoBill(sink.record, sink.failure or InternalError())


class _VideoSink:
    """A sink that keeps the record of a video."""

    def __init__(self) -> None:
        self.record: GenerationRecord | None = None
        self.failure: GatewayError | None = None

    def open(self, hold: Hold) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def begin(self, served: ServedBy) -> None:
        """Ignore the provider, because the record names it."""

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        """Ignore the events, because the meter has read them."""

    async def finish(self, record: GenerationRecord) -> None:
        self.record = record

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        self.failure, self.record = error, record


class _HeldVideo(HeldPart):
    """The ledger of one video, whose money has been on hold since the request."""

    def __init__(self, hold: Hold, ledger: Ledger, now_s: Callable[[], float]) -> None:
        super().__init__(hold)
        self._ledger = ledger
        self._now_s = now_s

    async def settle(self, hold: Hold, record: GenerationRecord) -> GenerationRecord:
        """Settle with the duration from request to result; a failed video costs nothing."""
        began_s = created_s(hold.id)
        record = replace(
            record,
            created_s=began_s,
            duration_ms=int((self._now_s() - began_s) * 1_000),
            first_token_ms=None,
        )
        if record.outcome != "ok":
            record = replace(record, outcome="error", cost_nano_usd=0, lines=())
        return await self._ledger.settle(self._whole, record)
