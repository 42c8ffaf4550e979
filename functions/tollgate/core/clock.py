"""Clocks, which other code receives as arguments: no other module reads the time or sleeps."""

import asyncio
import time
from typing import Final, Protocol

from msgspec import Struct

# `scope["extensions"][DEADLINE_EXTENSION]["epoch_ms"]` of an ASGI request is the Unix time at which
# the platform ends the invocation.
DEADLINE_EXTENSION: Final = "tollgate.deadline"
DAY_S: Final = 86_400
_UNITS: Final = ((DAY_S, "days"), (3_600, "h"), (60, "min"), (1, "s"))


def approximate_duration(seconds: int) -> str:
    """Return a duration in readable form, in the largest unit of which it has at least two, such as
    `23 h`.
    """
    for unit_s, name in _UNITS:
        if seconds >= 2 * unit_s:
            return f"{seconds // unit_s} {name}"
    return f"{seconds} s"


class Clock(Protocol):
    """A source of time that tests can move by hand."""

    def now_s(self) -> float:
        """Return the Unix time in seconds."""

    def monotonic_s(self) -> float:
        """Return the seconds since an arbitrary start, which never decrease."""

    async def sleep(self, delay_s: float) -> None:
        """Wait `delay_s` seconds."""


class SystemClock:
    """The clock of this machine."""

    def now_s(self) -> float:
        return time.time()

    def monotonic_s(self) -> float:
        return time.monotonic()

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)

    def pause(self, delay_s: float) -> None:
        """Wait `delay_s` seconds in a command, which has no event loop."""
        time.sleep(delay_s)


async def give_way() -> None:
    """Let other coroutines run before the next step of a long computation."""
    await asyncio.sleep(0)


class Deadline(Struct, frozen=True):
    """A time on the monotonic clock by which work must end."""

    clock: Clock
    at_s: float

    @classmethod
    def within(cls, clock: Clock, limit_s: float) -> "Deadline":
        """Return the deadline that is `limit_s` seconds from now."""
        return cls(clock, clock.monotonic_s() + limit_s)

    def remaining_s(self) -> float:
        """Return the seconds left, never below zero."""
        return max(0.0, self.at_s - self.clock.monotonic_s())

    def sooner(self, limit_s: float) -> "Deadline":
        """Return this deadline, or one `limit_s` seconds from now if that comes first."""
        return Deadline(self.clock, min(self.at_s, self.clock.monotonic_s() + limit_s))
