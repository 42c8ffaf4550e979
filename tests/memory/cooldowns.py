"""Cooldowns, speeds and faults of keys in memory."""

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from tollgate.core.clock import Clock
from tollgate.core.routing.endpoint_status import (
    AnswerTime,
    CooldownPolicy,
    KeyFault,
    KeyNote,
    Speed,
)
from tollgate.stores.routing.cooldowns import Failures, select_key_notes, select_resting
from tollgate.stores.routing.speeds import (
    WRITE_EVERY_S,
    MeasuredWindows,
    select_measured,
    window_of,
)


class MemoryCooldownStore:
    """Implements `stores.ports.base.CooldownStore`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[str, Failures] = {}
        self._windows: dict[str, MeasuredWindows] = {}
        self._unwritten: dict[str, AnswerTime] = {}
        self._written_s: dict[str, float] = {}

    async def find_resting(
        self, endpoint_ids: Collection[str], policy: CooldownPolicy
    ) -> Mapping[str, float]:
        """Return the endpoints in cooldown with the Unix second from which each may be probed."""
        failures = {each: self._failures.get(each) for each in endpoint_ids}
        return select_resting(failures, policy, now_s=self._clock.now_s())

    async def begin_probe(self, endpoint_id: str, policy: CooldownPolicy) -> bool:
        """Return True for one request after each cooldown."""
        failures, now_s = self._failures.get(endpoint_id), self._clock.now_s()
        if failures is None or not failures.rests(now_s, policy):
            return True
        if now_s < failures.probe_due_s(policy):
            return False
        self._failures[endpoint_id] = replace(
            failures, probed_s=int(now_s), probes=failures.probes + 1
        )
        return True

    async def release_probe(self, endpoint_id: str) -> None:
        """Undo `begin_probe`."""
        failures = self._failures.get(endpoint_id)
        if failures is not None and failures.is_probed:
            self._failures[endpoint_id] = replace(failures, probed_s=0, probes=failures.probes - 1)

    def awaits_answer(self, endpoint_id: str, policy: CooldownPolicy) -> bool:
        """Return True for a fault of the key, or a cooldown that an answer would end."""
        failures = self._failures.get(endpoint_id)
        return failures is not None and (
            failures.fault is not None or failures.may_recover(self._clock.now_s(), policy)
        )

    async def note_recovery(self, endpoint_id: str, policy: CooldownPolicy) -> None:
        """End the endpoint's cooldown and remove its key's fault."""
        failures = self._failures.get(endpoint_id)
        if failures is None:
            return
        after = replace(failures, fault=None)
        if failures.may_recover(self._clock.now_s(), policy):
            after = replace(after, count=0, probed_s=0, probes=0)
        self._failures[endpoint_id] = after

    async def find_key_notes(self, endpoint_ids: Collection[str]) -> Mapping[str, KeyNote]:
        """Return the endpoints whose last failure was a fault of their key."""
        failures = {each: self._failures.get(each) for each in endpoint_ids}
        return select_key_notes(failures, now_s=self._clock.now_s())

    async def count_failure(
        self, endpoint_id: str, policy: CooldownPolicy, fault: KeyFault | None = None
    ) -> bool:
        """Count a failure; return whether it is the one that makes the endpoint rest."""
        now_s = self._clock.now_s()
        before = self._failures.get(endpoint_id, Failures(0, 0, 0))
        after = self._failures[endpoint_id] = before.add_one(now_s, policy, fault)
        return after.count == policy.after_failures

    def add_answer(self, endpoint_id: str, times: AnswerTime) -> bool:
        """Add the time of an answer to those of this instance; return whether to write them."""
        before = self._unwritten.get(endpoint_id)
        self._unwritten[endpoint_id] = times if before is None else before.plus(times)
        written_s = self._written_s.get(endpoint_id)
        return written_s is None or self._clock.monotonic_s() >= written_s + WRITE_EVERY_S

    async def write_speed(self, endpoint_id: str) -> None:
        """Write the times of this instance's answers, for all instances."""
        times = self._unwritten.pop(endpoint_id, None)
        if times is None:
            return
        self._written_s[endpoint_id] = self._clock.monotonic_s()
        now_s = self._clock.now_s()
        before = self._windows.get(endpoint_id)
        if before is None:
            self._windows[endpoint_id] = MeasuredWindows(since_s=window_of(now_s), times=times)
        else:
            self._windows[endpoint_id] = before.add(times, now_s)

    async def find_speeds(self, endpoint_ids: Collection[str]) -> Mapping[str, Speed]:
        """Return the measured endpoints with their speeds."""
        windows = {each: self._windows.get(each) for each in endpoint_ids}
        return select_measured(windows, self._clock.now_s())
