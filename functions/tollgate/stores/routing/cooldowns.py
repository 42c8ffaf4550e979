"""The cooldowns of endpoints in DynamoDB, shared by all instances.

An endpoint's item counts its failures within one window, from which readers compute whether the
endpoint is resting. If the store cannot be reached, no endpoint rests.
"""

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct

from tollgate.aws.attributes import Item, number
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import ConditionFailed, StoreUnavailable
from tollgate.core.clock import Clock
from tollgate.core.routing.endpoint_status import AnswerTime, CooldownPolicy, Speed
from tollgate.stores.aws.decoding import read_number
from tollgate.stores.aws.expressions import COOLDOWN_ANOTHER, COOLDOWN_FIRST, ConditionalUpdate
from tollgate.stores.aws.items import CooldownItem
from tollgate.stores.aws.tables import cooldown_key
from tollgate.stores.routing.speeds import DynamoSpeeds, read_by_endpoint

_READ_FOR_S: Final = 5.0


class Failures(Struct, frozen=True):
    """The failures of an endpoint within one window."""

    since_s: int
    """Unix second of the first failure."""
    count: int
    """Number of failures."""
    last_s: int
    """Unix second of the last failure."""

    def add_one(self, now_s: float, policy: CooldownPolicy) -> "Failures":
        """Return the failures including one more now; after the window, a new count begins."""
        if self.since_s <= now_s - policy.within_s:
            return Failures(int(now_s), 1, int(now_s))
        return Failures(self.since_s, self.count + 1, int(now_s))

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
        unread = [endpoint_id for endpoint_id in endpoint_ids if not self._is_fresh(endpoint_id)]
        if unread:
            await self._read(unread)
        return select_resting(
            {endpoint_id: self._cache[endpoint_id].failures for endpoint_id in endpoint_ids},
            policy,
            now_s=self._clock.now_s(),
        )

    async def count_failure(self, endpoint_id: str, policy: CooldownPolicy) -> bool:
        """Count a failure, unless the store cannot be reached.

        Only one instance gets True: the one whose failure starts the cooldown.
        """
        now_s = int(self._clock.now_s())
        values: Item = {
            ":now": number(now_s),
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


def _read_failures(item: Item) -> Failures:
    return Failures(
        since_s=read_number(item, CooldownItem.SINCE),
        count=read_number(item, CooldownItem.COUNT),
        last_s=read_number(item, CooldownItem.LAST),
    )
