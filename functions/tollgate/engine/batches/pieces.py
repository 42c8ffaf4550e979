"""Runs a piece of a batch: decides the lines that earlier tries left open, then runs the rest."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final

from msgspec import Struct

from tollgate.core.batches import Batch, StepTry, Tally
from tollgate.core.clock import Deadline
from tollgate.core.errors import (
    AccessError,
    ErrorCode,
    GatewayError,
    InternalError,
    LedgerError,
    UpstreamError,
)
from tollgate.core.ids import following_id
from tollgate.engine.batches.answered_lines import AnsweredLines
from tollgate.engine.batches.line_run import LineOutcome, LineRun, Undecided, Waits
from tollgate.engine.batches.lines import BatchLine, parse_line, read_lines
from tollgate.engine.batches.results import (
    LineResult,
    NotRun,
    decode_results,
    encode_results,
)
from tollgate.engine.batches.submissions import SubmittedLines, SubmittedPiece
from tollgate.engine.batches.validation import Piece
from tollgate.stores.ports.batches import LineRecords
from tollgate.stores.rules.sweep import lost_generation

_log = logging.getLogger(__name__)

# A line is no longer run once its worker's process has ended this many times.
_DEATHS_MAX: Final = 5
# Minimum time in seconds that a worker must have left to begin a line.
_LINE_MIN_S: Final = 20.0
# Answers of a provider's batch that are billed at a time.
_ANSWERS_AT_ONCE: Final = 32
_ANSWERS_RETRY_S: Final = 60.0


class PieceOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of a try of a piece."""

    tally: Tally
    """Totals of the piece's results."""
    wait_s: float | None = None
    """None for a finished piece, otherwise the seconds after which another try is worthwhile."""
    clean: bool = True
    """False if lines are undecided."""


class PieceRun(Struct, frozen=True, kw_only=True):
    """One try of a piece."""

    run: LineRun
    records: LineRecords
    refusal: AccessError | None
    """The reason why the key may run no lines; None if it may."""
    number: int
    piece: Piece
    room: asyncio.Semaphore
    """Limits the lines that run concurrently in this process."""
    stop: asyncio.Event
    """Set when no further line may begin in this process."""
    submitted: SubmittedPiece | None = None
    """The submission to a provider; None for a piece that the gateway runs by itself."""

    async def finish(self, *, deadline: Deadline, not_run: NotRun | None) -> PieceOutcome:
        """Run the lines that no earlier try has run; store and return the results.

        With `not_run`, no line begins, and the lines that no try has run get this result. If the
        input file was deleted, only the results that an earlier try stored remain.
        """
        batch = self.run.batch
        *before, trial = batch.tries[self.number]
        # Earlier tries only waited for the provider.
        earlier = [each for each in before if each.clean or each.number >= self._runs_from]
        results = {result.custom_id: result for result in await self._stored(earlier)}
        lines = await self.read_lines()
        submitted = None if self.submitted is None else await self.submitted.load_accepted()
        if submitted is not None:
            lines = lines or submitted.lines
        left = [line for line in lines if line.custom_id not in results]
        found = await asyncio.gather(*(self._recall(line, earlier) for line in left))
        results |= {result.custom_id: result for result in found if result is not None}
        left = [line for line in lines if line.custom_id not in results]
        outcomes = list[LineOutcome]()
        if submitted is not None:
            outcomes += await self._run_answered(
                submitted, left, trial, deadline=deadline, not_run=not_run
            )
            ran = {line.number for line in submitted.lines}
            left = [line for line in left if line.number not in ran]
        if not_run is not None:
            outcomes += [unrun(line, trial, self.piece, not_run) for line in left]
        elif sum(not each.clean for each in earlier) >= _DEATHS_MAX:
            fail = partial(self.run.refused, refusal=InternalError())
            outcomes += [fail(line.custom_id, self._id(trial, line)) for line in left]
        else:
            outcomes += await asyncio.gather(*(self._run(line, trial, deadline) for line in left))
        results |= {it.custom_id: it for it in outcomes if isinstance(it, LineResult)}
        ordered = [line.custom_id for line in lines] or [*results]
        whole = [results[custom_id] for custom_id in ordered if custom_id in results]
        await self.store(whole)
        outcome = _add_up(whole, outcomes)
        if self.submitted is not None and submitted is not None and outcome.wait_s is None:
            ids = {line.custom_id for line in submitted.lines}
            costs = (it.tally.cost_nano_usd for it in whole if it.custom_id in ids)
            await self.submitted.settle(submitted, sum(costs))
        return outcome

    async def store(self, results: Sequence[LineResult]) -> None:
        """Store the results of this try."""
        name = piece_name(self.number, self.run.batch.tries[self.number][-1].number)
        await self.run.objects.put(self.run.batch, name, encode_results(results))

    @property
    def _runs_from(self) -> int:
        submission = None if self.submitted is None else self.submitted.submission
        return 0 if submission is None else submission.runs_from or 0

    async def _run_answered(
        self,
        submitted: SubmittedLines,
        left: Sequence[BatchLine],
        trial: StepTry,
        *,
        deadline: Deadline,
        not_run: NotRun | None,
    ) -> Sequence[LineOutcome]:
        """Bill the submitted lines by the provider's answers, in groups as the answers arrive."""
        if self.submitted is None:
            return ()
        answered = AnsweredLines(
            run=self.run,
            records=self.records,
            planner=self.submitted.planner(submitted.prices),
            hold=submitted.hold,
        )
        ran = {line.number for line in submitted.lines}
        waiting = {line.number: line for line in left if line.number in ran}
        outcomes, group = list[LineOutcome](), list[Awaitable[LineOutcome]]()
        is_whole = True
        try:
            async with aclosing(self.submitted.read_answers()) as answers:
                async for number, answer in answers:
                    if self.stop.is_set() or deadline.remaining_s() < _LINE_MIN_S:
                        is_whole = False
                        break
                    if number not in waiting:
                        continue
                    line = waiting.pop(number)
                    if answer.status is None:
                        reason = not_run or "batch_expired"
                        outcomes.append(unrun(line, trial, self.piece, reason))
                        continue
                    group.append(answered.settle(line, self._id(trial, line), deadline, answer))
                    if len(group) == _ANSWERS_AT_ONCE:
                        outcomes += await asyncio.gather(*group)
                        group = []
        except UpstreamError as failure:
            _log.warning("results of batch %s cannot be read: %s", self.run.batch.id, failure)
            is_whole = False
        outcomes += await asyncio.gather(*group)
        for line in waiting.values():
            if not is_whole and not self.submitted.is_given_up:
                outcomes.append(Waits(_ANSWERS_RETRY_S))
            elif not_run is not None:
                outcomes.append(unrun(line, trial, self.piece, not_run))
            else:
                missing = UpstreamError(
                    ErrorCode.PROVIDER_UNAVAILABLE,
                    "The provider's batch has no result for this line.",
                )
                outcomes.append(self.run.refused(line.custom_id, self._id(trial, line), missing))
        return outcomes

    async def _stored(self, earlier: Sequence[StepTry]) -> Sequence[LineResult]:
        """Return the results that the last clean try has stored."""
        for trial in earlier:
            if trial.clean:
                name = piece_name(self.number, trial.number)
                return decode_results(await read_stored(self.run, name))
        return ()

    async def read_lines(self) -> Sequence[BatchLine]:
        """Return the lines of the piece; none if the input file was deleted."""
        return [line async for group in read_piece(self.run, self.piece) for line in group]

    async def _recall(self, line: BatchLine, earlier: Sequence[StepTry]) -> LineResult | None:
        """Return the result of a line that an earlier worker has run; None if none has.

        A generation without a record is recorded as lost. Even if its worker is still running, the
        generation can then no longer be billed.
        """
        batch = self.run.batch
        for trial in earlier:
            if trial.clean:
                continue
            generation_id = self._id(trial, line)
            record = await self.records.get(batch.workspace_id, generation_id)
            if record is None:
                lost = lost_generation(generation_id, batch.workspace_id, batch.key_id)
                record = await self.records.decide(lost)
            result = await self.run.recall(line.custom_id, record)
            if result is not None:
                return result
        return None

    async def _run(self, line: BatchLine, trial: StepTry, deadline: Deadline) -> LineOutcome:
        generation_id = self._id(trial, line)
        if self.refusal is not None:
            return self.run.refused(line.custom_id, generation_id, self.refusal)
        async with self.room:
            if self.stop.is_set() or deadline.remaining_s() < _LINE_MIN_S:
                return Waits(0.0)
            return await self.run.run(line, generation_id, deadline)

    def _id(self, trial: StepTry, line: BatchLine) -> str:
        """Return the id of a line's generation in a try."""
        return following_id(trial.id, 1 + line.number - self.piece.first)


async def read_piece(run: LineRun, piece: Piece) -> AsyncIterator[Sequence[BatchLine]]:
    """Yield the lines of a piece in groups; yield no more once the input file is deleted."""
    read = partial(run.objects.read_input, run.batch)
    try:
        async for group in read_lines(read, piece.start, piece.end, first=piece.first):
            yield [parse_line(raw, run.batch.endpoint) for raw in group]
    except GatewayError as failure:
        if failure.code is not ErrorCode.FILE_NOT_FOUND:
            raise
        _log.warning("lines of batch %s do not run: %s", run.batch.id, failure.message)


async def read_stored(run: LineRun, name: str) -> bytes:
    """Return intermediate results; raise LedgerError if they are missing.

    Lines whose results are missing may have been billed, so they must not run again.
    """
    content = await run.objects.get(run.batch, name)
    if content is None:
        raise LedgerError(
            ErrorCode.SERVICE_UNAVAILABLE, f"The results {name} of {run.batch.id} are missing."
        )
    return content


def piece_name(number: int, trial: int) -> str:
    """Return the name of the results that a try of a piece has stored."""
    return f"pieces/{number}.{trial}"


def unrun(line: BatchLine, trial: StepTry, piece: Piece, reason: NotRun) -> LineResult:
    """Return the result of a line that did not run."""
    request_id = following_id(trial.id, 1 + line.number - piece.first)
    return LineResult(custom_id=line.custom_id, request_id=request_id, not_run=reason)


def _add_up(whole: Sequence[LineResult], outcomes: Sequence[LineOutcome]) -> PieceOutcome:
    tally = Tally()
    for result in whole:
        tally = tally.plus(result.tally)
    waits = [outcome.for_s for outcome in outcomes if isinstance(outcome, Waits)]
    undecided = any(isinstance(outcome, Undecided) for outcome in outcomes)
    wait_s = max(waits, default=0.0) if waits or undecided else None
    return PieceOutcome(tally=tally, wait_s=wait_s, clean=not undecided)


def stop_reason(batch: Batch) -> NotRun:
    """Return the reason why the remaining lines of a stopping batch do not run."""
    return "batch_cancelled" if batch.status == "cancelling" else "batch_expired"
