"""What is left of the limits of keys, in this process's memory."""

from tests.memory.books import MemoryBooks
from tollgate.core.clock import Clock
from tollgate.core.limits import TierLimits
from tollgate.core.principal import Principal
from tollgate.stores.rules.budget_left import least_percent_left


class MemoryBudgets:
    """The part of a ledger that knows what is left of a key's limits at any moment."""

    def __init__(self, books: MemoryBooks, clock: Clock) -> None:
        self._books = books
        self._clock = clock

    def budget_left_percent(
        self, principal: Principal, *, tier: TierLimits | None = None
    ) -> int | None:
        """Return the smallest share that is left of a key's limits in USD."""
        key = self._books.keys.get(principal.key_id)
        second = int(self._clock.now_s())
        states = [] if key is None else [key.state().within(tier, second)]
        return least_percent_left([states], second, principal.key_quotas)
