"""Reports endpoint failures and answer times to the store that all instances share."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from tollgate.core.errors import ErrorCode, MissingCredentials, UpstreamError
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.routing.endpoint_status import AnswerTime, CooldownPolicy, KeyFault, SpeedPolicy
from tollgate.engine.gateway import Journal
from tollgate.engine.usage.coverage import Coverage
from tollgate.providers.ports.base import Target
from tollgate.stores.ports.base import CooldownStore

# Failures that a single request cannot cause, so the endpoint itself is at fault.
_COUNTED: Final = frozenset(
    {
        ErrorCode.PROVIDER_RATE_LIMIT,
        ErrorCode.PROVIDER_OVERLOADED,
        ErrorCode.PROVIDER_UNAVAILABLE,
        ErrorCode.PROVIDER_TIMEOUT,
        ErrorCode.PROVIDER_AUTH,
    }
)
_DELIVERY_LIMIT_S: Final = 1.0
# Share of an answer's time above which the caller, and not the endpoint, made the answer slow.
_DELIVERY_SHARE_MAX: Final = 0.25


class EndpointReports:
    """The reports of one generation, sent in the background."""

    def __init__(
        self,
        store: CooldownStore,
        policy: CooldownPolicy,
        speeds: SpeedPolicy,
        *,
        probe: str | None = None,
    ) -> None:
        self._store = store
        # The endpoint that the generation probes, until its result is reported.
        self._probe = probe
        self._policy = policy
        self._speeds = speeds
        self._reports: dict[asyncio.Task[bool | None], str] = {}
        # The serving endpoint, and the milliseconds until its first token.
        self._serving: tuple[Target, int] | None = None
        self.coverage: Coverage | None = None
        """The coverage of the answer, which measures its delivery; None before an answer."""

    def note_failure(self, endpoint_id: str, error: UpstreamError) -> None:
        """Report a failure in the background, unless the request itself caused the failure."""
        if error.code in _COUNTED:
            self._end_probe(endpoint_id)
            report = self._store.count_failure(endpoint_id, self._policy, _fault_of(error))
            self._send(report, endpoint_id)

    def note_first_token(self, target: Target, first_token_ms: int) -> None:
        """Record the time to the first token, which also shows that the serving endpoint works."""
        self._serving = target, first_token_ms
        self._end_probe(target.endpoint_id)
        if self._store.awaits_answer(target.endpoint_id, self._policy):
            report = self._store.note_recovery(target.endpoint_id, self._policy)
            self._send(report, target.endpoint_id)

    def note_answer(self, record: GenerationRecord) -> None:
        """Add the time of a complete answer; the store decides when sums are written.

        Tokens are left out if they say nothing about speed: if the provider did not count
        them, if they are spread over several answers, or if tool runs or a slow caller interrupted
        them.
        """
        if self._serving is None or record.outcome != "ok" or record.attempts[-1].service_tier:
            # Other service tiers have other speeds.
            return
        target, first_token_ms = self._serving
        trace = record.trace
        is_single = trace.kind == "chat" and trace.choices == 1 and not trace.prompts
        counted = is_single and not record.runs and record.usage_source == "provider"
        duration_ms = record.attempts[-1].duration_ms
        delivery_s = 0.0 if self.coverage is None else self.coverage.delivery_s
        is_held_up = delivery_s * 1000 > duration_ms * _DELIVERY_SHARE_MAX
        tokens = (record.usage.output_tokens or 0) if counted and not is_held_up else 0
        times = AnswerTime(
            first_token_ms=first_token_ms,
            output_tokens=tokens,
            output_ms=duration_ms if tokens else 0,
            prompt_tokens=record.usage.input_tokens if counted else 0,
            cached_tokens=(record.usage.cache_read_input_tokens or 0) if counted else 0,
        )
        measured = self._speeds.measured_id(target.endpoint_id, trace.estimated_input_tokens)
        if self._store.add_answer(measured, times):
            report = self._store.write_speed(measured)
            self._send(report, target.endpoint_id)

    def release_probe(self) -> None:
        """Let another request probe the endpoint if the probe has had no result.

        The caller may have left, or the request itself may be at fault.
        """
        if self._probe is not None:
            self._send(self._store.release_probe(self._probe), self._probe)

    def _end_probe(self, endpoint_id: str) -> None:
        if endpoint_id == self._probe:
            self._probe = None

    async def deliver(self, journal: Journal, request_id: str) -> None:
        """Wait up to a second for the reports, because Lambda may freeze after the last byte.

        The store handles its own unavailability, so an exception in a report is a defect.
        """
        if not self._reports:
            return
        done, _ = await asyncio.wait(self._reports, timeout=_DELIVERY_LIMIT_S)
        for task in done:
            if task.cancelled():
                continue
            unexpected_error = task.exception()
            if isinstance(unexpected_error, Exception):
                journal.unexpected_error(unexpected_error, request_id)
            elif task.result():
                journal.endpoint_cooled_down(self._reports[task])

    def _send(self, report: Coroutine[Any, Any, bool | None], endpoint_id: str) -> None:
        self._reports[asyncio.create_task(report)] = endpoint_id


def _fault_of(error: UpstreamError) -> KeyFault | None:
    if isinstance(error, MissingCredentials):
        return "absent"
    return "rejected" if error.code is ErrorCode.PROVIDER_AUTH else None
