"""The batch worker, which runs one step after another, each under a lease."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.batches import Batch, LineFault, StepTry, Submission
from tollgate.core.clock import Clock, Deadline
from tollgate.core.errors import AccessError, GatewayError
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.engine.admission import admit
from tollgate.engine.batches.joining import join_results
from tollgate.engine.batches.line_run import WAITS_FOR, LineRun
from tollgate.engine.batches.lines import BATCH_FORMATS
from tollgate.engine.batches.pieces import PieceRun, read_stored, stop_reason
from tollgate.engine.batches.submissions import SubmittedPiece
from tollgate.engine.batches.validation import FileCheck, LineParser, Piece, read_index
from tollgate.engine.gateway import Gateway
from tollgate.ingress.base import Ingress
from tollgate.stores.ports.base import KeyDirectory
from tollgate.stores.ports.batches import (
    BatchObjects,
    BatchPlace,
    BatchStore,
    LineRecords,
    SubmissionLedger,
)
from tollgate.stores.rules.batches import (
    JOIN,
    VALIDATION,
    begin_try,
    extend,
    finish_join,
    finish_piece,
    finish_validation,
    give_back,
    is_late,
    is_stopping,
    next_step,
    refuse_file,
    submit,
    wakes_s,
)

_log = logging.getLogger(__name__)

# A worker that has not renewed its lease for this long counts as dead.
LEASE_S: Final = 60.0
# Seconds after which a failed step is tried again; its storage may have been full, for example.
_RETRY_S: Final = 60.0
# Minimum time in seconds that a worker must have left to begin a step.
_STEP_MIN_S: Final = 60.0
# Number of pieces that a worker runs at a time, so that one slow line does not leave it idle.
_PIECES_AT_ONCE: Final = 2
_INDEX: Final = "index"


class GatewaySource(Protocol):
    """Source of the gateway that serves a key."""

    async def for_key(self, key_id: str) -> Gateway:
        """Return the gateway that serves the lines of a piece from start to end."""


class BatchServices(Struct, frozen=True, kw_only=True):
    """Services that workers use."""

    store: BatchStore
    objects: BatchObjects
    records: LineRecords
    ledger: SubmissionLedger
    keys: KeyDirectory
    gateways: GatewaySource
    ingresses: Mapping[str, Ingress]
    ids: IdSource
    clock: Clock


class BatchWorker:
    """Works on batches; `lines_at_once` limits the lines that run at a time in this process."""

    def __init__(self, services: BatchServices, *, lines_at_once: int) -> None:
        self._services = services
        self._room = asyncio.Semaphore(lines_at_once)
        self.stop = asyncio.Event()
        self.steps = 0
        """The number of steps that this worker has tried."""

    async def work(self, place: BatchPlace, deadline: Deadline) -> float | None:
        """Try steps of a batch until none is free or the deadline is near.

        Returns the seconds after which more can be done; None if the batch has ended.
        """
        loops = (self._work(place, deadline) for _ in range(_PIECES_AT_ONCE))
        # If one loop fails, the other still ends before the platform may freeze the process.
        waits = list[float]()
        for ended in await asyncio.gather(*loops, return_exceptions=True):
            if isinstance(ended, BaseException):
                raise ended
            if ended is None:
                return None
            waits.append(ended)
        return min(waits)

    async def _work(self, place: BatchPlace, deadline: Deadline) -> float | None:
        services = self._services
        while True:
            batch, now_s = await services.store.get(place), services.clock.now_s()
            if batch is None or batch.is_ended:
                return None
            step = next_step(batch, now_s)
            if step is None:
                wake_s = wakes_s(batch)
                return LEASE_S if wake_s is None else max(wake_s - now_s, 1.0)
            if self.stop.is_set() or deadline.remaining_s() < _STEP_MIN_S:
                return 0.0
            trial = StepTry(services.ids.new_id(), now_s + LEASE_S)
            claim = partial(begin_try, step=step, trial=trial, now_s=now_s)
            begun = await services.store.change(place, claim)
            if begun is not None:
                self.steps += 1
                await self._try(begun, step, trial.id, deadline)

    async def _try(self, batch: Batch, step: int, try_id: str, deadline: Deadline) -> None:
        """Carry out a step while renewing its lease; give the step back if it fails."""
        renewing = asyncio.create_task(self._renew(batch, step, try_id))
        try:
            await self._carry_out(batch, step, deadline)
        except GatewayError as failure:
            _log.warning("step %s of batch %s failed: %s", step, batch.id, failure.message)
            await self._give_back(batch, step, try_id, _RETRY_S, clean=False)
        finally:
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing

    async def _carry_out(self, batch: Batch, step: int, deadline: Deadline) -> None:
        services = self._services
        refusal: AccessError | None = None
        principal = Principal(
            key_id=batch.key_id, workspace_id=batch.workspace_id, role="inference", label=""
        )
        try:
            principal = await services.keys.find_key(batch.workspace_id, batch.key_id)
        except AccessError as refused:
            refusal = refused
        format_ = BATCH_FORMATS[batch.endpoint]
        parser = LineParser(
            gateway=await services.gateways.for_key(batch.key_id),
            principal=principal,
            format=format_,
            ingress=services.ingresses[format_.name],
        )
        run = LineRun(parser=parser, objects=services.objects, batch=batch)
        if step == VALIDATION:
            await self._validate(run, refusal)
        elif step == JOIN:
            await self._join(run)
        else:
            await self._run_piece(run, step, refusal, deadline)

    async def _validate(self, run: LineRun, refusal: GatewayError | None) -> None:
        batch, trial = run.batch, run.batch.tries[VALIDATION][-1]
        faults, lines = tuple[LineFault, ...](), 0
        # Anthropic's batches never fail as a whole: each of their lines has a result.
        is_strict = batch.client != "anthropic"
        try:
            if refusal is not None:
                raise refusal
            await self._admit(run.parser)
        except GatewayError as refused:
            if refused.code in WAITS_FOR:
                raise
            faults = (
                ()
                if not is_strict
                else (LineFault(code=refused.code.value, message=refused.message),)
            )
        size_bytes = await run.objects.input_bytes(batch)
        if size_bytes is None and not faults:
            message = f"the file {batch.input_file_id} was deleted or has expired"
            faults = (LineFault(code="file_not_found", message=message, param="input_file_id"),)
        if size_bytes is not None and not faults:
            read = partial(run.objects.read_input, batch)
            check = FileCheck(run.parser, batch.id, is_strict=is_strict)
            checked = await check.run(read, size_bytes)
            faults, lines = checked.faults, checked.lines
            if not faults:
                await run.objects.put(batch, _INDEX, checked.index())
                await self._change(
                    batch,
                    lambda found: finish_validation(
                        found,
                        trial.id,
                        lines=lines,
                        pieces=len(checked.pieces),
                        bound_nano_usd=checked.bound_nano_usd,
                        now_s=self._now_s(),
                    ),
                )
                return
        await self._change(
            batch,
            lambda found: refuse_file(found, trial.id, faults, lines=lines, now_s=self._now_s()),
        )

    async def _admit(self, parser: LineParser) -> None:
        """Raise the refusal that a line of the batch would get now."""
        request_id = self._services.ids.new_id()
        try:
            await admit(parser.gateway, parser.principal, request_id)
        finally:
            parser.gateway.admissions.end(parser.principal, request_id)

    async def _run_piece(
        self, run: LineRun, number: int, refusal: AccessError | None, deadline: Deadline
    ) -> None:
        batch = run.batch
        trial = batch.tries[number][-1]
        piece = PieceRun(
            run=run,
            records=self._services.records,
            refusal=refusal,
            number=number,
            piece=(await self._pieces(run))[number],
            room=self._room,
            stop=self.stop,
        )
        not_run = stop_reason(batch) if is_stopping(batch, self._now_s()) else None
        if piece.piece.endpoint is not None:
            submitted = self._submitted(run, piece.piece.endpoint, number)
            wait_s = await submitted.advance(
                piece.read_lines,
                may_submit=refusal is None and not is_late(batch, self._now_s()),
                is_stopping=not_run is not None,
            )
            if wait_s is not None:
                await piece.store(())
                await self._give_back(batch, number, trial.id, wait_s, clean=True)
                return
            piece = replace(piece, submitted=submitted)
        outcome = await piece.finish(deadline=deadline, not_run=not_run)
        if outcome.wait_s is None:
            tally = outcome.tally
            await self._change(batch, lambda found: finish_piece(found, number, trial.id, tally))
            return
        await self._give_back(batch, number, trial.id, outcome.wait_s, clean=outcome.clean)

    def _submitted(self, run: LineRun, endpoint_id: str, number: int) -> SubmittedPiece:
        batch = run.batch
        trial = batch.tries[number][-1]

        async def change(submission: Submission | None) -> Batch | None:
            return await self._change(
                batch, lambda found: submit(found, number, trial.id, submission)
            )

        return SubmittedPiece(
            run,
            self._services.ledger,
            endpoint_id,
            trial,
            change=change,
            submission=batch.submissions.get(number),
        )

    async def _join(self, run: LineRun) -> None:
        batch, trial = run.batch, run.batch.tries[JOIN][-1]
        joined = await join_results(run, await self._pieces(run), trial)
        ended = await self._change(
            batch,
            lambda found: finish_join(
                found,
                trial.id,
                output_file_id=joined.output_file_id,
                error_file_id=joined.error_file_id,
                not_run=joined.not_run,
                now_s=self._now_s(),
            ),
        )
        if ended is None:
            return
        _log.info("batch %s has ended: %s", ended.id, ended.status)
        try:
            await run.objects.clear(ended)
        except GatewayError as failure:
            # The bucket's lifecycle rules delete the rest.
            _log.warning("results of batch %s remain: %s", ended.id, failure.message)

    async def _pieces(self, run: LineRun) -> tuple[Piece, ...]:
        if not run.batch.pieces:
            return ()
        return read_index(await read_stored(run, _INDEX))

    async def _renew(self, batch: Batch, step: int, try_id: str) -> None:
        """Extend the lease while the step is carried out."""
        while True:
            await self._services.clock.sleep(LEASE_S / 3)
            with suppress(GatewayError):
                until_s = self._now_s() + LEASE_S
                renew = partial(extend, step=step, try_id=try_id, until_s=until_s)
                if await self._change(batch, renew) is None:
                    return

    async def _give_back(
        self, batch: Batch, step: int, try_id: str, wait_s: float, *, clean: bool
    ) -> None:
        until_s = self._now_s() + wait_s
        await self._change(
            batch, lambda found: give_back(found, step, try_id, until_s, clean=clean)
        )

    async def _change(self, batch: Batch, change: Callable[[Batch], Batch | None]) -> Batch | None:
        return await self._services.store.change(BatchPlace(batch.workspace_id, batch.id), change)

    def _now_s(self) -> float:
        return self._services.clock.now_s()
