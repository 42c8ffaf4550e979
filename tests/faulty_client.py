"""A client to DynamoDB whose network loses replies, delivers late and repeats itself."""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from tollgate.stores.aws_json import ATTEMPTS_MAX, AwsCaller, Reply
from tollgate.stores.failures import StoreError, StoreUnavailable


class Killed(BaseException):
    """The process was killed at this point: nothing of it may run any more."""


@dataclass
class FaultyClient:
    """Passes calls on, with faults at the given rates; `late` are deliveries still to come.

    - killed: the write may or may not land, and the caller is gone
    - lost: the write lands and the reply does not come
    - late: no reply, and the write lands some time later
    - conflict: the write is refused for now, as a transaction on the item would do
    - twice: the write lands twice, as a client that repeats itself does it (never a hold)

    Like the real client it repeats a call without an answer, unless it may send it only once.
    """

    client: AwsCaller
    random: random.Random
    killed: float = 0.0
    lost: float = 0.0
    late: float = 0.0
    conflict: float = 0.0
    twice: float = 0.0
    late_tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> Reply:
        if operation not in ("PutItem", "UpdateItem"):
            return await self.client.call(operation, payload, attempts_max=attempts_max)
        maybe_applied = False
        for _ in range(attempts_max):
            draw = self.random.random()
            if draw < self.killed:
                if self.random.random() < 0.5:
                    await self._quietly(operation, payload)
                raise Killed
            draw -= self.killed
            if draw < self.lost:
                await self._quietly(operation, payload)
                maybe_applied = True
                continue
            draw -= self.lost
            if draw < self.late:
                self._deliver_late(operation, payload)
                maybe_applied = True
                continue
            draw -= self.late
            if draw < self.conflict:
                continue
            draw -= self.conflict
            if draw < self.twice and attempts_max > 1:
                await self._quietly(operation, payload)
            return await self.client.call(operation, payload, attempts_max=attempts_max)
        raise StoreUnavailable("injected", maybe_applied=maybe_applied)

    async def all_delivered(self) -> None:
        """Wait until nothing is on its way any more."""
        while self.late_tasks:
            await asyncio.gather(*self.late_tasks)

    def _deliver_late(self, operation: str, payload: Mapping[str, object]) -> None:
        async def deliver() -> None:
            await asyncio.sleep(self.random.random() * 0.5)
            await self._quietly(operation, payload)

        task = asyncio.create_task(deliver())
        self.late_tasks.add(task)
        task.add_done_callback(self.late_tasks.discard)

    async def _quietly(self, operation: str, payload: Mapping[str, object]) -> None:
        try:
            await self.client.call(operation, payload)
        except StoreError:
            return
