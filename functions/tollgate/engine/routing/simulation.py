"""Simulates a plan with failing endpoints, using the engine's cursor but sending no requests."""

from collections.abc import Sequence
from typing import Final, Self, assert_never

from msgspec import Struct

from tollgate.core.errors import ErrorCode, MissingCredentials, RequestError, UpstreamError
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
# The fault for a missing provider key. Nothing is sent, and every chain continues.
_NO_KEY: Final = "no_key"
# Jitter in the middle of its range, for pauses of average length.
_JITTER: Final = 0.5


class Fault(Struct, frozen=True):
    """The failure of every request to the matching endpoints, written as `429@anthropic`."""

    kind: str
    """An HTTP status from 400 to 599, or a name in `_KINDS`."""
    where: str
    """A provider, an endpoint (`provider/upstream`) or a model."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `KIND@WHERE`; raise RequestError for any other text."""
        kind, _, where = text.partition("@")
        is_status = kind.isascii() and kind.isdigit() and int(kind[:4]) in _STATUSES
        if not where or not (is_status or kind in _KINDS or kind == _NO_KEY):
            raise _refused(
                f"must be KIND@WHERE such as 429@openai; KIND is a status from 400 to 599, or "
                f"{', '.join(sorted((*_KINDS, _NO_KEY)))}; WHERE a provider, an endpoint or a model"
            )
        return cls(kind, where)

    def strikes(self, attempt: Attempt) -> bool:
        """Return True if the fault applies to an attempt."""
        target = attempt.target
        return self.where in (target.provider, target.endpoint_id, target.model)

    @property
    def is_silence(self) -> bool:
        """True if the endpoint sends nothing until the timeout; all other faults fail
        immediately.
        """
        return self.kind == "timeout"

    def error(self, attempt: Attempt) -> UpstreamError:
        """Return the error that a codec would raise for this fault."""
        provider = attempt.target.provider
        if self.kind == _NO_KEY:
            return MissingCredentials(f"The provider {provider} has no key.")
        if self.kind in _KINDS:
            return UpstreamError(_KINDS[self.kind], f"The provider {provider} fails.")
        return error_of_refusal(ProviderRefusal(provider=provider, status=int(self.kind)))


class SimulatedAttempt(Struct, frozen=True, kw_only=True):
    """A simulated attempt: its error (None if it serves), its duration, and the pause before the
    next one.
    """

    attempt: Attempt
    error: ErrorCode | None = None
    took_s: float = 0.0
    pause_s: float = 0.0


class Simulation(Struct, frozen=True):
    """Simulated attempts in order. The last one serves, or the caller gets its error."""

    attempts: tuple[SimulatedAttempt, ...]

    @property
    def error(self) -> ErrorCode | None:
        """Code of the error that the caller gets; None if an attempt serves."""
        return self.attempts[-1].error


def simulate(plan: Plan, faults: Sequence[Fault], *, time_s: float) -> Simulation:
    """Return the attempts within `time_s` seconds; raise RequestError for a fault that was never
    used.
    """
    for fault in faults:
        if not any(fault.strikes(attempt) for attempt in plan.attempts):
            endpoints = ", ".join(attempt.target.endpoint_id for attempt in plan.attempts)
            raise _refused(
                f"{fault.kind}@{fault.where} matches no endpoint of the plan: {endpoints}"
            )
    cursor = AttemptCursor(plan)
    tries: list[SimulatedAttempt] = []
    while True:
        attempt = cursor.attempt
        matching = next((fault for fault in faults if fault.strikes(attempt)), None)
        if matching is None:
            return Simulation((*tries, SimulatedAttempt(attempt=attempt)))
        error = matching.error(attempt)
        took_s = min(cursor.first_token_limit_s(time_s), time_s) if matching.is_silence else 0.0
        time_s -= took_s
        decision = cursor.advance(error, remaining_s=time_s, jitter=_JITTER)
        pause_s = 0.0
        match decision:
            case retry.Again(delay_s):
                pause_s = delay_s
            case retry.Next() | retry.Stop():
                pass
            case _:
                assert_never(decision)
        time_s -= pause_s
        tries.append(
            SimulatedAttempt(attempt=attempt, error=error.code, took_s=took_s, pause_s=pause_s)
        )
        if isinstance(decision, retry.Stop):
            return Simulation(tuple(tries))


def _refused(problem: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"simulate {problem}.", param="simulate")
