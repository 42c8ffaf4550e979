"""The store of sign-ins' codes in memory."""

from tollgate.core.clock import Clock
from tollgate.stores.ports.people import CodeKind


class MemoryCodes:
    """Implements `stores.ports.people.CodeStore`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.values: dict[tuple[str, str], tuple[bytes, float]] = {}
        self._counts: dict[tuple[str, str, int], int] = {}

    async def add(self, kind: CodeKind, digest: str, value: bytes, *, lifetime_s: int) -> bool:
        if await self.read(kind, digest) is not None:
            return False
        self.values[kind, digest] = (value, int(self._clock.now_s()) + lifetime_s)
        return True

    async def read(self, kind: CodeKind, digest: str) -> bytes | None:
        value, ends_s = self.values.get((kind, digest), (b"", 0))
        return value if ends_s > int(self._clock.now_s()) else None

    async def replace(
        self, kind: CodeKind, digest: str, old: bytes, new: bytes, *, lifetime_s: int | None
    ) -> bool:
        if await self.read(kind, digest) != old:
            return False
        ends_s = self.values[kind, digest][1]
        if lifetime_s is not None:
            ends_s = int(self._clock.now_s()) + lifetime_s
        self.values[kind, digest] = (new, ends_s)
        return True

    async def take(self, kind: CodeKind, digest: str) -> bytes | None:
        found = await self.read(kind, digest)
        self.values.pop((kind, digest), None)
        return found

    async def count(self, purpose: str, origin: str, *, window_s: int, most: int) -> bool:
        window = (purpose, origin, int(self._clock.now_s()) // window_s)
        self._counts[window] = self._counts.get(window, 0) + 1
        return self._counts[window] <= most
