"""What a plan would come to if endpoints failed: the engine's own walk, with nobody asked."""

from collections.abc import Sequence
from typing import Final, Self, assert_never

from msgspec import Struct

from tollgate.core.errors import ErrorCode, RequestError, UpstreamError
from tollgate.engine import retry
from tollgate.engine.attempt_cursor import AttemptCursor
from tollgate.providers.shared.refusals import ProviderRefusal, error_of_refusal
from tollgate.routing.planning.plan import Attempt, Plan

_KINDS: Final = {
    "auth": ErrorCode.PROVIDER_AUTH,
    "content_filter": ErrorCode.CONTENT_FILTER,
    "context": ErrorCode.CONTEXT_LENGTH_EXCEEDED,
    "overloaded": ErrorCode.PROVIDER_OVERLOADED,
    "rate_limit": ErrorCode.PROVIDER_RATE_LIMIT,
    "timeout": ErrorCode.PROVIDER_TIMEOUT,
    "unavailable": ErrorCode.PROVIDER_UNAVAILABLE,
}
_STATUSES: Final = range(400, 600)
# Halfway between the shortest and the longest pause.
_JITTER: Final = 0.5


class Fault(Struct, frozen=True):
    """What every try at an endpoint would meet, as `429@anthropic` says it.

    `where` is a provider, an endpoint (`provider/upstream`) or a model.
    """

    kind: str
    where: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `KIND@WHERE`: a status, or one of the names; RequestError for anything else."""
        kind, _, where = text.partition("@")
        is_status = kind.isascii() and kind.isdigit() and int(kind[:4]) in _STATUSES
        if not where or not (is_status or kind in _KINDS):
            raise _refused(
                f"must be KIND@WHERE such as 429@openai; KIND is a status from 400 to 599, or "
                f"{', '.join(_KINDS)}; WHERE a provider, an endpoint or a model"
            )
        return cls(kind, where)

    def strikes(self, attempt: Attempt) -> bool:
        """Whether it is this attempt that fails."""
        target = attempt.target
        return self.where in (target.provider, target.endpoint_id, target.model)

    @property
    def is_silence(self) -> bool:
        """Whether nothing comes, until that has taken too long; the others fail at once."""
        return self.kind == "timeout"

    def error(self, attempt: Attempt) -> UpstreamError:
        """The failure, as a codec would tell it."""
        provider = attempt.target.provider
        if self.kind in _KINDS:
            return UpstreamError(_KINDS[self.kind], f"The provider {provider} fails.")
        return error_of_refusal(ProviderRefusal(provider=provider, status=int(self.kind)))


class SimulatedAttempt(Struct, frozen=True, kw_only=True):
    """One try: how it failed, how long that took, and the pause before the next; or it serves."""

    attempt: Attempt
    error: ErrorCode | None = None
    took_s: float = 0.0
    pause_s: float = 0.0


class Simulation(Struct, frozen=True):
    """Every try in order; the last one serves, or its error is the answer."""

    attempts: tuple[SimulatedAttempt, ...]

    @property
    def error(self) -> ErrorCode | None:
        """What the caller is told if nobody serves."""
        return self.attempts[-1].error


def simulated(plan: Plan, faults: Sequence[Fault], *, time_s: float) -> Simulation:
    """What would be tried within `time_s`, seconds, if these faults were met.

    RequestError for a fault that is in the way of nothing in the plan.
    """
    for fault in faults:
        if not any(fault.strikes(attempt) for attempt in plan.attempts):
            endpoints = ", ".join(attempt.target.endpoint_id for attempt in plan.attempts)
            raise _refused(f"{fault.kind}@{fault.where} meets nothing of the plan: {endpoints}")
    walk = AttemptCursor(plan)
    made: list[SimulatedAttempt] = []
    while True:
        attempt = walk.attempt
        met = next((fault for fault in faults if fault.strikes(attempt)), None)
        if met is None:
            return Simulation((*made, SimulatedAttempt(attempt=attempt)))
        error = met.error(attempt)
        took_s = min(walk.first_token_limit_s(time_s), time_s) if met.is_silence else 0.0
        time_s -= took_s
        verdict = walk.failed(error, remaining_s=time_s, jitter=_JITTER)
        pause_s = 0.0
        match verdict:
            case retry.Again(delay_s):
                pause_s = delay_s
            case retry.Next() | retry.Stop():
                pass
            case _:
                assert_never(verdict)
        time_s -= pause_s
        made.append(
            SimulatedAttempt(attempt=attempt, error=error.code, took_s=took_s, pause_s=pause_s)
        )
        if isinstance(verdict, retry.Stop):
            return Simulation(tuple(made))


def _refused(what: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"simulate {what}.", param="simulate")
