"""The cooldowns of endpoints in DynamoDB, shared by all instances.

An endpoint's item counts its failures within one window; readers compute from this count whether
the endpoint is resting. If the store cannot be reached, no endpoint rests.
"""

import contextlib
from collections.abc import Collection, Mapping
from typing import Final, get_args

from msgspec import Struct

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import ConditionFailed, StoreUnavailable
from tollgate.core.clock import Clock
from tollgate.core.routing.endpoint_status import (
    FAULT_LASTS_S,
    AnswerTime,
    CooldownPolicy,
    KeyFault,
    KeyNote,
    Speed,
)
from tollgate.stores.aws.decoding import read_number, read_optional_text
from tollgate.stores.aws.expressions import (
    COOLDOWN_ANOTHER,
    COOLDOWN_FIRST,
    COOLDOWN_KEY_WORKS,
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

    def add_one(
        self, now_s: float, policy: CooldownPolicy, fault: KeyFault | None = None
    ) -> "Failures":
        """Return the failures including one more now; after the window, a new count begins."""
        if self.since_s <= now_s - policy.within_s:
            return Failures(int(now_s), 1, int(now_s), fault)
        return Failures(self.since_s, self.count + 1, int(now_s), fault)

    def key_note(self, now_s: float) -> KeyNote | None:
        """Return the fault of the provider's key; None after a day without another failure."""
        if self.fault is None or self.last_s <= now_s - FAULT_LASTS_S:
            return None
        return KeyNote(self.fault, self.last_s)

    def rests_until_s(self, policy: CooldownPolicy) -> float | None:
        """Return the Unix second until which the endpoint rests; None if it is not resting."""
        if self.count < policy.after_failures:
            return None
        return self.last_s + policy.rest_s


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
        """Return the resting endpoints, using reads from the last five seconds."""
        failures = await self._find(endpoint_ids)
        return select_resting(failures, policy, now_s=self._clock.now_s())

    def has_key_note(self, endpoint_id: str) -> bool:
        """Return True if the last write or read of this instance had a fault of the key."""
        read = self._cache.get(endpoint_id)
        return read is not None and read.failures is not None and read.failures.fault is not None

    async def remove_key_note(self, endpoint_id: str) -> None:
        """Remove the fault of an endpoint's key, unless the store cannot be reached."""
        values: Item = {":fault": string(_NO_FAULT)}
        write = COOLDOWN_KEY_WORKS.build(self._table, cooldown_key(endpoint_id), values)
        with contextlib.suppress(ConditionFailed, StoreUnavailable):
            await self._client.call("UpdateItem", write, attempts_max=1)
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

    def _is_fresh(self, endpoint_id: str) -> bool:
        read = self._cache.get(endpoint_id)
        return read is not None and self._clock.monotonic_s() < read.at_s + _READ_FOR_S

    async def _find(self, endpoint_ids: Collection[str]) -> Mapping[str, Failures | None]:
        unread = [endpoint_id for endpoint_id in endpoint_ids if not self._is_fresh(endpoint_id)]
        if unread:
            await self._read(unread)
        return {endpoint_id: self._cache[endpoint_id].failures for endpoint_id in endpoint_ids}

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
    """Return the endpoints that rest now, with the Unix second at which each rest ends."""
    untils = {name: counted.rests_until_s(policy) for name, counted in failures.items() if counted}
    return {name: until_s for name, until_s in untils.items() if until_s and until_s > now_s}


def select_key_notes(
    failures: Mapping[str, Failures | None], *, now_s: float
) -> dict[str, KeyNote]:
    """Return the faults of keys by endpoint, without faults of more than a day ago."""
    notes = {name: counted.key_note(now_s) for name, counted in failures.items() if counted}
    return {name: note for name, note in notes.items() if note}


def _read_failures(item: Item) -> Failures:
    return Failures(
        since_s=read_number(item, CooldownItem.SINCE),
        count=read_number(item, CooldownItem.COUNT),
        last_s=read_number(item, CooldownItem.LAST),
        fault=_FAULTS.get(read_optional_text(item, CooldownItem.FAULT) or _NO_FAULT),
    )
