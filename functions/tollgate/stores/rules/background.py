"""Pure rules of the work on a background response, which one worker at a time runs under a lease.

A worker that dies lets its lease run out, and the next try decides what became of the generation of
the try before.
"""

from msgspec.structs import replace

from tollgate.core.background import (
    BackgroundFailure,
    BackgroundResponse,
    BackgroundStatus,
    ProviderRun,
)
from tollgate.core.batches import StepTry


def is_free(job: BackgroundResponse, now_s: float) -> bool:
    """Return whether a worker may try the response now."""
    return not job.is_ended and (not job.tries or job.tries[-1].until_s <= now_s)


def holds_lease(job: BackgroundResponse, try_id: str) -> bool:
    """Return whether the response still waits for the result of a try."""
    return not job.is_ended and bool(job.tries) and job.tries[-1].id == try_id


def begin_answer(
    job: BackgroundResponse, trial: StepTry, now_s: float
) -> BackgroundResponse | None:
    """Return the response with a new try; None if it is not to be tried now."""
    if holds_lease(job, trial.id):
        return job
    if not is_free(job, now_s):
        return None
    if job.tries:
        trial = replace(trial, number=job.tries[-1].number + 1)
    return replace(job, tries=(*job.tries, trial), status=_unless_cancelled(job, "in_progress"))


def extend_answer(
    job: BackgroundResponse, try_id: str, until_s: float
) -> BackgroundResponse | None:
    """Return the response with a longer lease; None if the try has lost its lease."""
    if not holds_lease(job, try_id):
        return None
    *earlier, trial = job.tries
    return replace(job, tries=(*earlier, replace(trial, until_s=until_s)))


def give_answer_back(
    job: BackgroundResponse, try_id: str, until_s: float, *, clean: bool
) -> BackgroundResponse | None:
    """Return the response with a try that has ended without result; None if the lease is lost.

    A clean try has no generation that is undecided, and neither have the tries before it.
    """
    if not holds_lease(job, try_id):
        return None
    *earlier, trial = job.tries
    ended = replace(trial, until_s=0.0 if job.status == "cancelled" else until_s, clean=clean)
    status = _unless_cancelled(job, "queued" if job.run is None else "in_progress")
    return replace(job, tries=(ended,) if clean else (*earlier, ended), status=status)


def note_run(
    job: BackgroundResponse, try_id: str, run: ProviderRun | None
) -> BackgroundResponse | None:
    """Return the response with its run at a provider; None if the try has lost its lease.

    If the run is over and the response was cancelled, its tries are removed.
    """
    if not holds_lease(job, try_id):
        return None
    if job.run == run:
        return job
    is_over = run is None and job.status == "cancelled"
    return replace(job, run=run, tries=() if is_over else job.tries)


def finish_answer(
    job: BackgroundResponse,
    try_id: str,
    status: BackgroundStatus,
    *,
    now_s: float,
    generation_id: str | None = None,
    failure: BackgroundFailure | None = None,
) -> BackgroundResponse | None:
    """Return the response at its end; None if the try has lost its lease."""
    if not holds_lease(job, try_id):
        return None
    return replace(
        job,
        status=_unless_cancelled(job, status),
        ended_s=int(now_s),
        tries=(),
        run=None,
        generation_id=generation_id,
        failure=None if job.status == "cancelled" else failure,
    )


def cancel_answer(job: BackgroundResponse, now_s: float) -> BackgroundResponse | None:
    """Return the response as cancelled; None if it has ended.

    The worker that runs it finds that its lease is lost, and ends the generation. If a provider
    runs it, the next try cancels it there, and bills what ran.
    """
    if job.is_ended or job.status == "cancelled":
        return None
    if job.run is not None:
        *earlier, trial = job.tries
        trial = replace(trial, until_s=0.0) if trial.clean else trial
        return replace(job, status="cancelled", tries=(*earlier, trial))
    return replace(job, status="cancelled", ended_s=int(now_s), tries=())


def _unless_cancelled(job: BackgroundResponse, status: BackgroundStatus) -> BackgroundStatus:
    return "cancelled" if job.status == "cancelled" else status
