"""A ledger in which tests can see and disturb each call."""

import asyncio
from collections.abc import Callable
from typing import Any

from tollgate.core.principal import Principal
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.ports.base import Hold, Ledger


class WatchedLedger:
    """A ledger that can be slow and can fail; `settled` are the records it was asked to keep."""

    def __init__(self, ledger: Ledger, trace: list[str]) -> None:
        self.settled: list[GenerationRecord] = []
        self.settle_failure: Exception | None = None
        self.hold_takes_s = 0.0
        self.hold_tries = 1
        self.settle_takes_s = 0.0
        self._ledger = ledger
        self._trace = trace

    def budget_left_percent(self, principal: Principal, **limits: Any) -> int | None:
        return self._ledger.budget_left_percent(principal, **limits)

    async def hold(
        self,
        principal: Principal,
        amount_nano_usd: int,
        first_id: str | None = None,
        *,
        meanwhile: Callable[[], None] | None = None,
        **limits: Any,
    ) -> Hold:
        for _ in range(self.hold_tries):
            if meanwhile is not None:
                meanwhile()
            await asyncio.sleep(self.hold_takes_s)
        hold = await self._ledger.hold(principal, amount_nano_usd, first_id, **limits)
        self._trace.append("hold")
        return hold

    async def top_up(self, hold: Hold, more_nano_usd: int) -> Hold:
        self._trace.append("top-up")
        return await self._ledger.top_up(hold, more_nano_usd)

    async def settle(self, hold: Hold, record: GenerationRecord) -> GenerationRecord:
        self.settled.append(record)
        await asyncio.sleep(self.settle_takes_s)
        if self.settle_failure is not None:
            raise self.settle_failure
        standing = await self._ledger.settle(hold, record)
        self._trace.append("settle")
        return standing
