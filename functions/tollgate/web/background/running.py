"""The worker of background responses, which answers one response at a time under a lease."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec import MsgspecError, Struct, json
from msgspec.structs import replace

from tollgate.core.background import (
    RESPONSE_LABEL,
    RUN_MAX_S,
    WAIT_MAX_S,
    BackgroundFailure,
    BackgroundResponse,
    ProviderRun,
)
from tollgate.core.batches import StepTry
from tollgate.core.clock import Clock, Deadline
from tollgate.core.errors import (
    ErrorCode,
    GatewayError,
    InternalError,
    OutcomeUnknown,
    RequestError,
)
from tollgate.core.ids import IdSource, following_id
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.tracing import PlatformIds
from tollgate.engine.batches.line_run import WAITS_FOR, Undecided, Waits, wait_after
from tollgate.engine.batches.worker import LEASE_S, GatewaySource
from tollgate.engine.gateway import Gateway
from tollgate.engine.generate import generate
from tollgate.engine.replies.reply_sink import SingleCallSink
from tollgate.ingress.base import ParsedCall
from tollgate.ingress.responses.stored import StoredResponse
from tollgate.stores.ports.base import KeyDirectory, Ledger
from tollgate.stores.ports.batches import (
    BackgroundServices,
    BatchPlace,
    LineRecords,
    SubmissionLedger,
)
from tollgate.stores.rules.background import (
    begin_answer,
    extend_answer,
    finish_answer,
    give_answer_back,
    holds_lease,
    is_free,
    note_run,
)
from tollgate.stores.rules.sweep import lost_generation
from tollgate.web.access import METERED
from tollgate.web.background.answering import (
    BackgroundLedger,
    BackgroundSink,
    answer_name,
    store_answer,
)
from tollgate.web.background.events import EventLog, events_name
from tollgate.web.background.outcomes import (
    Answered,
    TryOutcome,
    ended_worker,
    failed_by,
    too_large,
    too_long,
)
from tollgate.web.background.payers import find_payer
from tollgate.web.background.provider_runs import ResponseRun, RunAnswer, RunServices
from tollgate.web.background.starting import REQUEST, StoredRequest
from tollgate.web.chat_app import MeteredEndpoint
from tollgate.web.generation.entrance import Entered
from tollgate.web.http.reply import is_large_body

_log: Final = logging.getLogger(__name__)

# Seconds between two looks for a cancellation.
_WATCH_S: Final = 2.0
# Minimum time in seconds that a worker must have left to begin an answer.
_RUN_MIN_S: Final = 60.0
# A response is no longer run once its worker's process has ended this many times.
_DEATHS_MAX: Final = 5
# Seconds after which a try that failed without a decision is tried again.
_RETRY_S: Final = 5.0


class WorkerServices(Struct, frozen=True, kw_only=True):
    """Services that workers use."""

    background: BackgroundServices
    records: LineRecords
    ledger: SubmissionLedger
    keys: KeyDirectory
    gateways: GatewaySource
    endpoint: MeteredEndpoint
    """The endpoint whose requests wait, which makes their calls."""
    ids: IdSource
    clock: Clock


class BackgroundWorker:
    """Answers background responses."""

    def __init__(self, services: WorkerServices) -> None:
        self._services = services
        self.stop = asyncio.Event()
        self.steps = 0
        """The number of tries that this worker has begun."""

    async def work(self, place: BatchPlace, deadline: Deadline) -> float | None:
        """Try to answer a response.

        Returns the seconds after which more can be done; None if the response has ended.
        """
        services, now_s = self._services, self._services.clock.now_s()
        job = await services.background.store.get(place)
        if job is None or job.is_ended:
            return None
        if not is_free(job, now_s):
            return max(job.tries[-1].until_s - now_s, 1.0)
        if self.stop.is_set() or deadline.remaining_s() < _RUN_MIN_S:
            return 0.0
        trial = StepTry(services.ids.new_id(), now_s + LEASE_S)
        begin = partial(begin_answer, trial=trial, now_s=now_s)
        begun = await services.background.store.change(place, begin)
        if begun is None:
            return 1.0
        self.steps += 1
        return await _Try(services, begun).run(deadline.sooner(RUN_MAX_S))


class _Try:
    """One try of a response."""

    def __init__(self, services: WorkerServices, job: BackgroundResponse) -> None:
        self._services = services
        self._parts = services.background.parts
        self._job = job
        self._trial = job.tries[-1]
        self._is_cancelled = False

    async def run(self, deadline: Deadline) -> float | None:
        """Answer while renewing the lease; return the seconds until another try, or None."""
        answering = asyncio.create_task(self._answer(deadline))
        watching = asyncio.create_task(self._watch(answering))
        try:
            outcome = await answering
        except asyncio.CancelledError:
            if not self._is_cancelled:
                raise
            return None
        except GatewayError as failure:
            _log.warning("a try of %s failed: %s", self._job.id, failure.message)
            outcome = Undecided()
        finally:
            watching.cancel()
            answering.cancel()
            await asyncio.wait({watching, answering})
        return await self._end(outcome)

    async def _watch(self, answering: "asyncio.Task[TryOutcome]") -> None:
        """Renew the lease; cancel the answer once the caller has cancelled the response."""
        clock, store = self._services.clock, self._services.background.store
        job = self._job
        place = BatchPlace(job.workspace_id, job.id)
        while True:
            await clock.sleep(_WATCH_S)
            with suppress(GatewayError):
                found = await store.get(place)
                if found is None or not holds_lease(found, self._trial.id):
                    self._is_cancelled = True
                    answering.cancel()
                    return
                now_s = clock.now_s()
                if found.tries[-1].until_s - now_s < LEASE_S * 2 / 3:
                    until_s = now_s + LEASE_S
                    await store.change(
                        place, partial(extend_answer, try_id=self._trial.id, until_s=until_s)
                    )

    async def _answer(self, deadline: Deadline) -> TryOutcome:
        *earlier, _ = self._job.tries
        if self._job.run is not None:
            return await self._follow(earlier, deadline)
        for trial in earlier:
            recalled = None if trial.clean else await self._recall(trial)
            if recalled is not None:
                return recalled
        is_lost = any(not trial.clean for trial in earlier)
        if is_lost and await self._parts.get(self._job, events_name(1)) is not None:
            # Callers have read the first events of an answer that will never go on.
            return failed_by(ended_worker())
        if sum(not trial.clean for trial in earlier) >= _DEATHS_MAX:
            return failed_by(InternalError())
        try:
            return await self._generate(deadline)
        except GatewayError as refusal:
            # Refused before its hold; a store that is away is tried again like a rate limit.
            return self._refused(refusal)

    async def _recall(self, trial: StepTry) -> TryOutcome | None:
        """Return the outcome of a generation that an earlier worker began; None for none.

        A generation without a record is recorded as lost. Even if its worker still runs, the
        generation can then no longer be billed.
        """
        record = await self._decide(trial)
        if record.outcome == "ok":
            return await self._recall_answer(record)
        if record.error is None or record.error in WAITS_FOR:
            return None
        return failed_by(RequestError(ErrorCode(record.error), "The answer failed."))

    async def _decide(self, trial: StepTry) -> GenerationRecord:
        job, records = self._job, self._services.records
        generation_id = _generation_of(trial)
        record = await records.get(job.workspace_id, generation_id)
        if record is None:
            lost = lost_generation(generation_id, job.workspace_id, job.key_id)
            record = await records.decide(lost)
        return record

    async def _recall_answer(self, record: GenerationRecord) -> TryOutcome:
        content = await self._parts.get(self._job, answer_name(record.id))
        return failed_by(ended_worker()) if content is None else Answered(record.id, content)

    def _run(self, gateway: Gateway) -> ResponseRun:
        services = self._services
        return ResponseRun(
            RunServices(parts=self._parts, ledger=services.ledger, records=services.records),
            gateway,
            self._job,
            self._note_run,
        )

    async def _note_run(self, run: ProviderRun | None) -> BackgroundResponse | None:
        return await self._change(partial(note_run, try_id=self._trial.id, run=run))

    async def _follow(self, earlier: Sequence[StepTry], deadline: Deadline) -> TryOutcome:
        """Return the outcome of a try for a response that runs at its provider."""
        run = self._run(await self._services.gateways.for_key(self._job.key_id))
        undecided = [trial for trial in earlier if not trial.clean]
        for trial in undecided:
            record = await self._decide(trial)
            if record.outcome != "lost":
                # The worker may have died after storing the record and before settling.
                await run.release(record.cost_nano_usd)
                return await self._recall_answer(record)
        found = await run.poll() if len(undecided) < _DEATHS_MAX else InternalError()
        if found is None:
            # Nothing was sent, so the next try begins anew.
            return Waits(_RETRY_S)
        if isinstance(found, Waits):
            return found
        outcome: TryOutcome
        try:
            if isinstance(found, GatewayError):
                raise found
            outcome = await self._generate(deadline, run, found)
        except GatewayError as refusal:
            outcome = self._refused(refusal)
        if isinstance(outcome, Answered | BackgroundFailure):
            await run.release()
        return outcome

    async def _generate(
        self, deadline: Deadline, run: ResponseRun | None = None, answer: RunAnswer | None = None
    ) -> TryOutcome:
        services, job, parts = self._services, self._job, self._parts
        has_run = answer is not None
        principal = await find_payer(services.keys, job, has_run=has_run, days=job.days)
        request = _decode(await parts.get(job, REQUEST))
        gateway = await services.gateways.for_key(job.key_id)
        if run is not None and answer is not None:
            gateway = run.answered(answer)
        entered = Entered(
            headers=request.headers,
            principal=principal,
            request_id=_generation_of(self._trial),
            reach=METERED.reach(principal),
            gateway=gateway,
            body=request.body,
            is_large=is_large_body(request.body),
        )
        try:
            call, _ = await services.endpoint.read_call(entered, deadline, PlatformIds())
        finally:
            gateway.admissions.end(principal, entered.request_id)
        parsed = call.parsed
        if not isinstance(parsed, ParsedCall) or parsed.stored_input is None:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "The key no longer stores responses.", param="background"
            )
        call = replace(call, labels={**call.labels, RESPONSE_LABEL: job.id})
        if run is None:
            run = self._run(gateway)
            submitted = await run.submit(call)
            if isinstance(submitted, GatewayError):
                await run.release()
                return failed_by(submitted)
            if submitted is not None:
                return submitted
        clock = services.clock
        log = EventLog(services.background, job, clock) if job.streams else None
        sink = BackgroundSink(job, gateway, call, parsed, log=log, clock=clock)
        keep = partial(self._keep, sink)
        ledger: Ledger = self._ledger(gateway, keep)
        if answer is not None:
            ledger = run.ledger(answer, keep)
        billed = replace(gateway, ledger=ledger)
        outer = services.endpoint.logging_sink(sink, gateway, call, request.body)
        if parsed.request.wants_single_call:
            outer = SingleCallSink(outer, parsed.request.answers)
        await generate(billed, call, outer)
        return await self._outcome(sink, deadline)

    async def _keep(self, sink: BackgroundSink, record: GenerationRecord) -> None:
        await store_answer(self._parts, self._job, sink, record)

    def _ledger(
        self, gateway: Gateway, keep: Callable[[GenerationRecord], Awaitable[None]]
    ) -> BackgroundLedger:
        return BackgroundLedger(
            gateway.ledger, keep, lambda: self._is_cancelled or self._job.streams
        )

    async def _outcome(self, sink: BackgroundSink, deadline: Deadline) -> TryOutcome:
        record, failure = sink.record, sink.failure
        if record is None or record.outcome == "lost" or isinstance(failure, OutcomeUnknown):
            return Undecided()
        if failure is None and record.outcome == "ok":
            content = await self._parts.get(self._job, answer_name(record.id))
            return Undecided() if content is None else Answered(record.id, content)
        failure = failure or too_large(record)
        if failure.code is ErrorCode.PROVIDER_TIMEOUT and not deadline.remaining_s():
            return failed_by(too_long())
        has_begun = await self._parts.get(self._job, events_name(1)) is not None
        return failed_by(failure) if has_begun else self._refused(failure)

    def _refused(self, refusal: GatewayError) -> TryOutcome:
        """Return when to try again, if that may help, or else the failure."""
        waited_s = self._services.clock.now_s() - self._job.created_s
        if refusal.code in WAITS_FOR and waited_s < WAIT_MAX_S:
            return wait_after(refusal)
        return failed_by(refusal)

    async def _end(self, outcome: TryOutcome) -> float | None:
        now_s, try_id = self._services.clock.now_s(), self._trial.id
        match outcome:
            case Answered(generation_id, content):
                await self._parts.keep(self._job, content)
                status = StoredResponse.from_bytes(content).status
                await self._change(
                    partial(
                        finish_answer,
                        try_id=try_id,
                        status="incomplete" if status == "incomplete" else "completed",
                        now_s=now_s,
                        generation_id=generation_id,
                    )
                )
            case BackgroundFailure() as failure:
                failed = partial(finish_answer, try_id=try_id, status="failed", failure=failure)
                await self._change(partial(failed, now_s=now_s))
            case Waits(for_s):
                return await self._give_back(for_s, clean=True)
            case Undecided():
                return await self._give_back(_RETRY_S, clean=False)
        return None

    async def _give_back(self, wait_s: float, *, clean: bool) -> float:
        until_s = self._services.clock.now_s() + wait_s
        give = partial(give_answer_back, try_id=self._trial.id, until_s=until_s, clean=clean)
        await self._change(give)
        return wait_s

    async def _change(
        self, change: Callable[[BackgroundResponse], BackgroundResponse | None]
    ) -> BackgroundResponse | None:
        place = BatchPlace(self._job.workspace_id, self._job.id)
        return await self._services.background.store.change(place, change)


def _generation_of(trial: StepTry) -> str:
    """Return the id of the generation of a try."""
    return following_id(trial.id, 1)


def _decode(stored: bytes | None) -> StoredRequest:
    if stored is None:
        raise RequestError(ErrorCode.NOT_FOUND, "The request was deleted or has expired.")
    try:
        return json.decode(stored, type=StoredRequest)
    except MsgspecError as corrupt:
        raise InternalError from corrupt
