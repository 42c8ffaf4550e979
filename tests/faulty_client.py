"""A client to DynamoDB whose network loses replies, delivers late and repeats itself."""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tollgate.stores.aws_json import ATTEMPTS_MAX, AwsCaller, Reply
from tollgate.stores.failures import StoreError, StoreUnavailable


class Killed(BaseException):
    """The process was killed at this point: nothing of it may run any more."""


# The writes of the money path, by what only their update has.
WRITE_SITES = {
    "record": None,
    "wallet hold": "SET av = av - :a, h.#h = :a",
    "wallet rest": "SET h.#h = av",
    "wallet settle": "sp = sp + :c",
    "wallet top-up": "SET av = av - :x, h.#h = :b",
    "key hold": "SET h.#h = :a",
    "key settle": "us = us + :c",
    "key top-up": "SET h.#h = :b",
}


def write_site(payload: Mapping[str, object]) -> str:
    """Which write of the money path this is, or `other`."""
    if "Item" in payload:
        return "record"
    update = str(payload.get("UpdateExpression"))
    return next((name for name, part in WRITE_SITES.items() if part and part in update), "other")


@dataclass
class FaultyClient:
    """Passes calls on, with faults at the given rates; `late` are deliveries still to come.

    - killed: the write may or may not land, and the caller is gone
    - lost: the write lands and the reply does not come
    - late: no reply, and the write lands some time later
    - conflict: the write is refused for now, as a transaction on the item would do
    - twice: the write lands twice before its reply comes, as something in between may do it

    Like the real client it repeats a call without an answer, unless it may send it only once.
    """

    client: AwsCaller
    random: random.Random
    killed: float = 0.0
    lost: float = 0.0
    late: float = 0.0
    conflict: float = 0.0
    twice: float = 0.0
    late_max_s: float = 0.5
    hits: Counter[str] = field(default_factory=Counter)
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
                self._hit("killed", payload)
                if self.random.random() < 0.5:
                    await self._quietly(operation, payload)
                raise Killed
            draw -= self.killed
            if draw < self.lost:
                self._hit("lost", payload)
                await self._quietly(operation, payload)
                maybe_applied = True
                continue
            draw -= self.lost
            if draw < self.late:
                self._hit("late", payload)
                self._deliver_late(operation, payload)
                maybe_applied = True
                continue
            draw -= self.late
            if draw < self.conflict:
                self._hit("refused", payload)
                continue
            draw -= self.conflict
            if draw >= self.twice:
                return await self.client.call(operation, payload, attempts_max=attempts_max)
            self._hit("twice", payload)
            reply = await self.client.call(operation, payload, attempts_max=attempts_max)
            await self._quietly(operation, payload)
            return reply
        raise StoreUnavailable("injected", maybe_applied=maybe_applied)

    async def all_delivered(self) -> None:
        """Wait until nothing is on its way any more."""
        while self.late_tasks:
            await asyncio.gather(*self.late_tasks)

    def _deliver_late(self, operation: str, payload: Mapping[str, object]) -> None:
        async def deliver() -> None:
            await asyncio.sleep(self.random.random() * self.late_max_s)
            await self._quietly(operation, payload)

        task = asyncio.create_task(deliver())
        self.late_tasks.add(task)
        task.add_done_callback(self.late_tasks.discard)

    def _hit(self, fault: str, payload: Mapping[str, object]) -> None:
        self.hits[f"{fault} {write_site(payload)}"] += 1

    async def _quietly(self, operation: str, payload: Mapping[str, object]) -> None:
        try:
            await self.client.call(operation, payload)
        except StoreError:
            return
