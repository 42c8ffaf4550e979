"""Pure rules of the work on a batch: the steps, who may try one, and what a finished step changes.

A batch is validated, its pieces run in any order, and its results are joined. Each step is tried
by one worker at a time, under a lease. A worker that dies lets its lease run out, and the next try
decides what became of the lines of the try before.
"""

from typing import Final

from msgspec.structs import replace

from tollgate.core.batches import Batch, BatchStatus, LineFault, StepTry, Submission, Tally

VALIDATION: Final = -1
JOIN: Final = -2
# Maximum number of a batch's submissions that wait for providers, which limits the money on hold.
SUBMISSIONS_MAX: Final = 8
# Seconds before a batch expires from which the gateway runs the lines that no provider has.
LEFT_TO_GATEWAY_S: Final = 6 * 3_600


def is_stopping(batch: Batch, now_s: float) -> bool:
    """Return whether no further line may begin, because the batch is cancelled or expired."""
    return batch.status == "cancelling" or batch.expires_s <= now_s


def is_late(batch: Batch, now_s: float) -> bool:
    """Return whether nothing more is submitted to a provider, because the end is near."""
    return batch.expires_s - LEFT_TO_GATEWAY_S <= now_s


def next_step(batch: Batch, now_s: float) -> int | None:
    """Return a step that a worker may try now: VALIDATION, JOIN, or the number of a piece."""
    if batch.is_ended:
        return None
    if batch.status == "validating":
        return VALIDATION if _is_free(batch, VALIDATION, now_s) else None
    for step in sorted(batch.tries):
        if step >= 0 and _is_free(batch, step, now_s):
            return step
    stopping = is_stopping(batch, now_s)
    waiting = sum(it.runs_from is None for it in batch.submissions.values())
    may_begin = waiting < SUBMISSIONS_MAX or is_late(batch, now_s)
    if batch.begun < batch.pieces and not stopping:
        return batch.begun if may_begin else None
    if any(step >= 0 for step in batch.tries) or not _is_free(batch, JOIN, now_s):
        return None
    return JOIN


def wakes_s(batch: Batch) -> float | None:
    """Return the Unix second at which a step that is being tried may be tried again, or None."""
    ends = [tries[-1].until_s for tries in batch.tries.values()]
    return min(ends, default=None)


def begin_try(batch: Batch, step: int, trial: StepTry, now_s: float) -> Batch | None:
    """Return the batch with a new try of a step; None if the step is not to be tried now."""
    tries = batch.tries.get(step, ())
    if tries and tries[-1].id == trial.id:
        return batch
    if next_step(batch, now_s) != step:
        return None
    if tries:
        trial = replace(trial, number=tries[-1].number + 1)
    begun = max(batch.begun, step + 1)
    status: BatchStatus = batch.status
    if step == JOIN and status == "in_progress":
        status = "finalizing"
    return _enter(
        replace(
            batch,
            tries={**batch.tries, step: (*tries, trial)},
            begun=begun,
            done=batch.done + (0,) * (begun - len(batch.done)),
        ),
        status,
        now_s,
    )


def extend(batch: Batch, step: int, try_id: str, until_s: float) -> Batch | None:
    """Return the batch with a longer lease; None if the try has lost its lease."""
    if not _holds(batch, step, try_id):
        return None
    *earlier, trial = batch.tries[step]
    longer = replace(trial, until_s=until_s)
    return replace(batch, tries={**batch.tries, step: (*earlier, longer)})


def give_back(batch: Batch, step: int, try_id: str, until_s: float, *, clean: bool) -> Batch | None:
    """Return the batch with a try that has ended unfinished; None if the try has lost its lease.

    A clean try has stored its results, and nothing of the tries before it is undecided.
    """
    if not _holds(batch, step, try_id):
        return None
    *earlier, trial = batch.tries[step]
    ended = replace(trial, until_s=until_s, clean=clean)
    kept = (ended,) if clean else (*earlier, ended)
    return replace(batch, tries={**batch.tries, step: kept})


def finish_validation(
    batch: Batch, try_id: str, *, lines: int, pieces: int, bound_nano_usd: int, now_s: float
) -> Batch | None:
    """Return the batch whose lines may run; None if the try has lost its lease."""
    if not _holds(batch, VALIDATION, try_id):
        return None
    counted = replace(batch, lines=lines, pieces=pieces, bound_nano_usd=bound_nano_usd)
    return _enter(_without(counted, VALIDATION), "in_progress", now_s)


def refuse_file(
    batch: Batch, try_id: str, faults: tuple[LineFault, ...], *, lines: int, now_s: float
) -> Batch | None:
    """Return the batch as failed, because its file is at fault; None if the lease is lost."""
    if not _holds(batch, VALIDATION, try_id):
        return None
    return _end(replace(batch, faults=faults, lines=lines), "failed", now_s)


def submit(batch: Batch, piece: int, try_id: str, submission: Submission | None) -> Batch | None:
    """Return the batch with a piece's submission, or without any; None if the lease is lost."""
    if not _holds(batch, piece, try_id):
        return None
    if batch.submissions.get(piece) == submission:
        return batch
    left = {key: it for key, it in batch.submissions.items() if key != piece}
    return replace(batch, submissions=left if submission is None else {**left, piece: submission})


def finish_piece(batch: Batch, piece: int, try_id: str, tally: Tally) -> Batch | None:
    """Return the batch with the results of a piece; None if the try has lost its lease."""
    if not _holds(batch, piece, try_id):
        return None
    done = list(batch.done)
    done[piece] = batch.tries[piece][-1].number
    left = {key: it for key, it in batch.submissions.items() if key != piece}
    return replace(
        _without(batch, piece),
        done=tuple(done),
        tally=batch.tally.plus(tally),
        submissions=left,
    )


def finish_join(
    batch: Batch,
    try_id: str,
    *,
    output_file_id: str | None,
    error_file_id: str | None,
    not_run: int,
    now_s: float,
) -> Batch | None:
    """Return the batch at its end; None if the try has lost its lease.

    `not_run` is the number of lines that did not run before the end.
    """
    if not _holds(batch, JOIN, try_id):
        return None
    status: BatchStatus = "expired" if not_run else "completed"
    if batch.status == "cancelling":
        status = "cancelled"
    ended = replace(
        batch,
        output_file_id=output_file_id,
        error_file_id=error_file_id,
        not_run=not_run,
    )
    return _end(ended, status, now_s)


def cancel(batch: Batch, now_s: float) -> Batch | None:
    """Return the batch as being cancelled; None if it has ended or its results are being joined."""
    if batch.is_ended or batch.status == "finalizing":
        return None
    # A validation that is under way ends by its lease: nothing of it can run any more.
    stopped = _without(batch, VALIDATION)
    tries = {
        step: (*earlier, replace(last, until_s=now_s) if last.clean else last)
        for step, (*earlier, last) in stopped.tries.items()
    }
    # Pieces that wait for a provider are tried at once, and cancelled there.
    return _enter(replace(stopped, tries=tries), "cancelling", now_s)


def _is_free(batch: Batch, step: int, now_s: float) -> bool:
    tries = batch.tries.get(step)
    return not tries or tries[-1].until_s <= now_s


def _holds(batch: Batch, step: int, try_id: str) -> bool:
    tries = batch.tries.get(step, ())
    return bool(tries) and tries[-1].id == try_id and not tries[-1].clean


def _without(batch: Batch, step: int) -> Batch:
    return replace(batch, tries={key: it for key, it in batch.tries.items() if key != step})


def _enter(batch: Batch, status: BatchStatus, now_s: float) -> Batch:
    if status == batch.status:
        return batch
    return replace(batch, status=status, times={**batch.times, status: int(now_s)})


def _end(batch: Batch, status: BatchStatus, now_s: float) -> Batch:
    return _enter(replace(batch, tries={}, done=(), submissions={}), status, now_s)
