"""The cooldowns of endpoints in DynamoDB, shared by all instances.

An endpoint's item counts its failures within one window; readers compute from this count whether
the endpoint is resting. After the rest, one conditional write makes one request the probe, and
its answer ends the cooldown. If the store cannot be reached, no endpoint rests.
"""

import contextlib
from collections.abc import Collection, Mapping
from typing import Final, get_args

from msgspec import Struct
from msgspec.structs import replace

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import ConditionFailed, StoreUnavailable
from tollgate.core.clock import Clock
from tollgate.core.routing.endpoint_status import (
    FAILURES_LAST_S,
    FAULT_LASTS_S,
    PROBE_LASTS_S,
    AnswerTime,
    CooldownPolicy,
    KeyFault,
    KeyNote,
    Speed,
)
from tollgate.stores.aws.decoding import (
    read_number,
    read_optional_number,
    read_optional_text,
)
from tollgate.stores.aws.expressions import (
    COOLDOWN_ANOTHER,
    COOLDOWN_FIRST,
    COOLDOWN_KEY_WORKS,
    COOLDOWN_OVER,
    COOLDOWN_PROBE,
    COOLDOWN_UNPROBED,
    ConditionalUpdate,
)
from tollgate.stores.aws.items import CooldownItem
from tollgate.stores.aws.tables import cooldown_key
from tollgate.stores.routing.speeds import DynamoSpeeds, read_by_endpoint

_READ_FOR_S: Final = 5.0
_NO_FAULT: Final = "-"


_FAULTS: Final[Mapping[str, KeyFault]] = {fault: fault for fault in get_args(KeyFault)}


class Failures(Struct, frozen=True):
    """The failures of an endpoint within one window."""

    since_s: int
    """Unix second of the first failure."""
    count: int
    """Number of failures."""
    last_s: int
    """Unix second of the last failure."""
    fault: KeyFault | None = None
    """Fault of the provider's key that caused the last failure."""
    probed_s: int = 0
    """Unix second at which the last probe began; 0 without one."""
    probes: int = 0
    """Number of probes since the endpoint last answered."""

    def add_one(
        self, now_s: float, policy: CooldownPolicy, fault: KeyFault | None = None
    ) -> "Failures":
        """Return the failures after one more failure now.

        A new count begins when the window has ended. From a cooldown until the endpoint answers,
        the window stays open.
        """
        if self.since_s <= now_s - policy.within_s and not self.rests(now_s, policy):
            return Failures(int(now_s), 1, int(now_s), fault)
        return replace(self, count=self.count + 1, last_s=int(now_s), fault=fault)

    def rests(self, now_s: float, policy: CooldownPolicy) -> bool:
        """Return True from the failure that starts a cooldown until the endpoint has answered."""
        return self.count >= policy.after_failures and self.last_s > _old_s(now_s, policy)

    @property
    def is_probed(self) -> bool:
        """True if a probe began after the last failure."""
        return self.probed_s > self.last_s

    def may_recover(self, now_s: float, policy: CooldownPolicy) -> bool:
        """Return True if an answer that begins now ends the cooldown."""
        return self.rests(now_s, policy) and (self.is_probed or now_s >= self.probe_due_s(policy))

    def probe_due_s(self, policy: CooldownPolicy) -> float:
        """Return the Unix second from which the next probe may begin."""
        if self.is_probed:
            return self.probed_s + PROBE_LASTS_S
        return self.last_s + policy.rest_after(self.probes)

    def key_note(self, now_s: float) -> KeyNote | None:
        """Return the fault of the provider's key; None after a day without another failure."""
        if self.fault is None or self.last_s <= now_s - FAULT_LASTS_S:
            return None
        return KeyNote(self.fault, self.last_s)


class _Read(Struct, frozen=True):
    at_s: float
    """Monotonic second of the read."""
    failures: Failures | None


class DynamoCooldownStore:
    """Implements `stores.ports.base.CooldownStore`."""

    def __init__(self, client: AwsCaller, table: str, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock
        self._cache: dict[str, _Read] = {}
        self._speeds = DynamoSpeeds(client, table, clock)

    async def find_resting(
        self, endpoint_ids: Collection[str], policy: CooldownPolicy
    ) -> Mapping[str, float]:
        """Return the endpoints in cooldown, using reads from the last five seconds."""
        failures = await self._find(endpoint_ids)
        return select_resting(failures, policy, now_s=self._clock.now_s())

    async def begin_probe(self, endpoint_id: str, policy: CooldownPolicy) -> bool:
        """Return True if this request alone probes the endpoint.

        Also returns True if the endpoint is no longer in cooldown or the store cannot be reached.
        """
        failures, now_s = self._known(endpoint_id), self._clock.now_s()
        if failures is None or not failures.rests(now_s, policy):
            return True
        if now_s < failures.probe_due_s(policy):
            return False
        values: Item = {
            ":now": number(int(now_s)),
            ":l": number(failures.last_s),
            ":p": number(failures.probed_s),
            ":most": number(policy.after_failures),
            ":zero": number(0),
            ":one": number(1),
        }
        try:
            item = await self._update(endpoint_id, COOLDOWN_PROBE, values)
        except ConditionFailed:
            # Another request has become the probe, or has already reported its result.
            self._cache.pop(endpoint_id, None)
            return False
        except StoreUnavailable:
            return True
        self._cache[endpoint_id] = _Read(self._clock.monotonic_s(), _read_failures(item))
        return True

    async def release_probe(self, endpoint_id: str) -> None:
        """Undo `begin_probe`, unless the endpoint has failed since or the store is away."""
        failures = self._known(endpoint_id)
        if failures is None or not failures.is_probed:
            return
        values: Item = {
            ":l": number(failures.last_s),
            ":p": number(failures.probed_s),
            ":one": number(1),
        }
        request = COOLDOWN_UNPROBED.build(self._table, cooldown_key(endpoint_id), values)
        with contextlib.suppress(ConditionFailed, StoreUnavailable):
            await self._client.call("UpdateItem", request, attempts_max=1)
        self._cache.pop(endpoint_id, None)

    def awaits_answer(self, endpoint_id: str, policy: CooldownPolicy) -> bool:
        """Return True if this instance last read a fault of the key, or a cooldown that an answer
        would end.
        """
        failures = self._known(endpoint_id)
        return failures is not None and (
            failures.fault is not None or failures.may_recover(self._clock.now_s(), policy)
        )

    async def note_recovery(self, endpoint_id: str, policy: CooldownPolicy) -> None:
        """End an endpoint's cooldown and remove its key's fault, unless the store cannot be
        reached or the endpoint has failed again.
        """
        failures, values = self._known(endpoint_id), {":fault": string(_NO_FAULT)}
        write = COOLDOWN_KEY_WORKS
        if failures is not None and failures.may_recover(self._clock.now_s(), policy):
            write = COOLDOWN_OVER
            values |= {":zero": number(0), ":l": number(failures.last_s)}
        request = write.build(self._table, cooldown_key(endpoint_id), values)
        with contextlib.suppress(ConditionFailed, StoreUnavailable):
            await self._client.call("UpdateItem", request, attempts_max=1)
        self._cache.pop(endpoint_id, None)

    async def find_key_notes(self, endpoint_ids: Collection[str]) -> Mapping[str, KeyNote]:
        """Return the faults of keys, from reads of the last five seconds."""
        return select_key_notes(await self._find(endpoint_ids), now_s=self._clock.now_s())

    async def count_failure(
        self, endpoint_id: str, policy: CooldownPolicy, fault: KeyFault | None = None
    ) -> bool:
        """Count a failure with the fault of the key, unless the store cannot be reached.

        Only one instance gets True: the one whose failure starts the cooldown.
        """
        now_s = int(self._clock.now_s())
        values: Item = {
            ":now": number(now_s),
            ":fault": string(fault or _NO_FAULT),
            ":one": number(1),
            ":since": number(int(now_s - policy.within_s)),
            ":most": number(policy.after_failures),
            ":old": number(int(_old_s(now_s, policy))),
        }
        # The third attempt succeeds if another instance has just begun a window.
        for write in (COOLDOWN_ANOTHER, COOLDOWN_FIRST, COOLDOWN_ANOTHER):
            try:
                item = await self._update(endpoint_id, write, values)
                failures = _read_failures(item)
            except ConditionFailed:
                continue
            except StoreUnavailable:
                return False
            self._cache[endpoint_id] = _Read(self._clock.monotonic_s(), failures)
            return failures.count == policy.after_failures
        return False

    def add_answer(self, endpoint_id: str, times: AnswerTime) -> bool:
        """Add an answer to this instance's sums; return True if the sums are due to be written."""
        return self._speeds.add(endpoint_id, times)

    async def write_speed(self, endpoint_id: str) -> None:
        """Write this instance's sums for an endpoint, unless the store cannot be reached."""
        await self._speeds.write(endpoint_id)

    async def find_speeds(self, endpoint_ids: Collection[str]) -> Mapping[str, Speed]:
        """Return the speeds of the measured endpoints."""
        return await self._speeds.find(endpoint_ids)

    def _known(self, endpoint_id: str) -> Failures | None:
        read = self._cache.get(endpoint_id)
        return None if read is None else read.failures

    def _is_fresh(self, endpoint_id: str) -> bool:
        read = self._cache.get(endpoint_id)
        return read is not None and self._clock.monotonic_s() < read.at_s + _READ_FOR_S

    async def _find(self, endpoint_ids: Collection[str]) -> Mapping[str, Failures | None]:
        unread = [endpoint_id for endpoint_id in endpoint_ids if not self._is_fresh(endpoint_id)]
        if unread:
            await self._read(unread)
        # Another request may have removed an entry in the meantime.
        return {endpoint_id: self._known(endpoint_id) for endpoint_id in endpoint_ids}

    async def _read(self, endpoint_ids: Collection[str]) -> None:
        sent_s = self._clock.monotonic_s()
        keys = [cooldown_key(endpoint_id) for endpoint_id in endpoint_ids]
        failures = await read_by_endpoint(self._client, self._table, keys, _read_failures)
        for endpoint_id in endpoint_ids:
            self._cache[endpoint_id] = _Read(sent_s, failures.get(endpoint_id))

    async def _update(self, endpoint_id: str, write: ConditionalUpdate, values: Item) -> Item:
        request = write.build(self._table, cooldown_key(endpoint_id), values)
        request["ReturnValues"] = "ALL_NEW"
        reply = await self._client.call("UpdateItem", request, attempts_max=1)
        item: Item = reply["Attributes"]
        return item


def select_resting(
    failures: Mapping[str, Failures | None], policy: CooldownPolicy, *, now_s: float
) -> dict[str, float]:
    """Return the endpoints in cooldown, with the Unix second from which each may be probed."""
    return {
        name: counted.probe_due_s(policy)
        for name, counted in failures.items()
        if counted and counted.rests(now_s, policy)
    }


def select_key_notes(
    failures: Mapping[str, Failures | None], *, now_s: float
) -> dict[str, KeyNote]:
    """Return the faults of keys by endpoint, without faults of more than a day ago."""
    notes = {name: counted.key_note(now_s) for name, counted in failures.items() if counted}
    return {name: note for name, note in notes.items() if note}


def _old_s(now_s: float, policy: CooldownPolicy) -> float:
    """Return the Unix second up to which failures are forgotten."""
    return now_s - policy.longest_rest_s - FAILURES_LAST_S


def _read_failures(item: Item) -> Failures:
    return Failures(
        since_s=read_number(item, CooldownItem.SINCE),
        count=read_number(item, CooldownItem.COUNT),
        last_s=read_number(item, CooldownItem.LAST),
        fault=_FAULTS.get(read_optional_text(item, CooldownItem.FAULT) or _NO_FAULT),
        probed_s=read_optional_number(item, CooldownItem.PROBED) or 0,
        probes=read_optional_number(item, CooldownItem.PROBES) or 0,
    )
