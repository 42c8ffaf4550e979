"""Repeats a key's last refusal for a second, so that an early retry costs no calls to the store."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from tollgate.core.clock import Clock
from tollgate.core.errors import GatewayError

# New credit and changed limits take effect within this time.
REPEATED_FOR_S: Final = 1.0
# Beyond this number, the key that was refused least recently is forgotten.
_KEYS_MAX: Final = 10_000


class _Noted(Struct, frozen=True):
    refusal: GatewayError
    since_s: float
    """Monotonic second at which the store decided on the request."""


class RecentRefusals:
    """The last general refusal of each key: one that applies to all of the key's requests."""

    def __init__(self) -> None:
        self._noted: OrderedDict[str, _Noted] = OrderedDict()

    def check(self, key_id: str, clock: Clock) -> None:
        """Raise the key's last refusal again if it is recent."""
        noted = self._noted.get(key_id)
        if noted is None:
            return
        passed_s = clock.monotonic_s() - noted.since_s
        wait_s = noted.refusal.retry_after_s
        if passed_s < (REPEATED_FOR_S if wait_s is None else min(REPEATED_FOR_S, wait_s)):
            raise noted.refusal.again(passed_s)
        del self._noted[key_id]

    @contextmanager
    def repeating(self, key_id: str, clock: Clock) -> Iterator[None]:
        """Check the key before the block runs, and note a general refusal that the block raises."""
        self.check(key_id, clock)
        since_s = clock.monotonic_s()
        try:
            yield
        except GatewayError as refusal:
            if refusal.is_general:
                self._noted[key_id] = _Noted(refusal.again(0.0), since_s)
                self._noted.move_to_end(key_id)
                if len(self._noted) > _KEYS_MAX:
                    self._noted.popitem(last=False)
            raise
