"""Reads a document within a limit of CPU time, on the main thread of a process."""

import resource
import signal
from types import FrameType

from msgspec.structs import replace

from tollgate.core.documents.reading import DocumentFault, ReadFault, ReadingReply, ReadingRequest
from tollgate.reading.read import perform


class _OutOfTime(BaseException):
    """Ends a reading; not an Exception, because libraries catch these."""


def perform_in_time(request: ReadingRequest, *, start_s: float | None = None) -> ReadingReply:
    """Return the reply to a request with the CPU time used, or the document's fault.

    `start_s` is the process's CPU time when the work for the document began, by default now.
    """
    if start_s is None:
        start_s = _cpu_seconds()
    before = signal.signal(signal.SIGPROF, _raise_out_of_time)
    try:
        signal.setitimer(signal.ITIMER_PROF, request.cpu_seconds_max)
        try:
            reply = perform(request)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except _OutOfTime:
        return ReadFault(fault=DocumentFault.TOO_SLOW)
    finally:
        signal.signal(signal.SIGPROF, before)
    if isinstance(reply, ReadFault):
        return reply
    return replace(reply, cpu_seconds=_cpu_seconds() - start_s)


def _raise_out_of_time(number: int, frame: FrameType | None) -> None:
    raise _OutOfTime


def _cpu_seconds() -> float:
    """Return the CPU time that this process has taken."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
