"""The speeds of endpoints in DynamoDB, shared by all instances.

Each instance adds up the times of its answers, and regularly adds these sums to the endpoint's
item. The item has two windows, each of at least half an hour and 20 answers. The earlier window
loses weight as the current one fills up.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tollgate.aws.attributes import Item, number
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import ConditionFailed, StoreUnavailable
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.routing.endpoint_status import AnswerTime, Speed
from tollgate.stores.aws.decoding import decode_items, read_number, read_optional_number
from tollgate.stores.aws.expressions import SPEED_FIRST, SPEED_MORE, SPEED_NEXT
from tollgate.stores.aws.items import SpeedItem
from tollgate.stores.aws.tables import endpoint_of_cooldown, get_items, speed_key

WINDOW_S: Final = 1_800
# A window with fewer answers stays open, so an endpoint with little traffic keeps its figures.
WINDOW_ANSWERS_MIN: Final = 20
# Time without an answer after which an endpoint's speed counts as unknown.
SPEED_LASTS_S: Final = DAY_S
# Minimum time between an instance's writes for one endpoint.
WRITE_EVERY_S: Final = 60.0
_READ_FOR_S: Final = 30.0
# Maximum time that a request waits for the speeds or the cooldowns.
_READ_LIMIT_S: Final = 0.5
_Decoded = TypeVar("_Decoded")


class MeasuredWindows(Struct, frozen=True, kw_only=True):
    """Sums over an endpoint's answers in the two latest windows that have answers."""

    since_s: int
    """Unix second at which the last window began."""
    times: AnswerTime
    before_s: int = 0
    """Unix second at which the earlier window began."""
    before: AnswerTime | None = None

    def add(self, times: AnswerTime, now_s: float) -> "MeasuredWindows":
        """Return the windows after adding answers, which may begin a new window."""
        since_s = window_of(now_s)
        is_open = self.times.answers < WINDOW_ANSWERS_MIN and self.since_s > since_s - SPEED_LASTS_S
        if since_s == self.since_s or is_open:
            return replace(self, times=self.times.plus(times))
        return MeasuredWindows(
            since_s=since_s, times=times, before_s=self.since_s, before=self.times
        )

    def speed(self, now_s: float) -> Speed | None:
        """Return the current speed; None if the last answer is too old."""
        if now_s >= self.since_s + WINDOW_S + SPEED_LASTS_S:
            return None
        parts, since_s = [(1.0, self.times)], self.since_s
        if self.before is not None and self.before_s > now_s - SPEED_LASTS_S:
            weight_before = 1 - min(
                (now_s - self.since_s) / WINDOW_S, self.times.answers / WINDOW_ANSWERS_MIN
            )
            if weight_before > 0:
                parts.append((weight_before, self.before))
                since_s = self.before_s
        answers = sum(weight * times.answers for weight, times in parts)
        prompts = sum(weight * times.prompt_tokens for weight, times in parts)
        cached = sum(weight * times.cached_tokens for weight, times in parts)
        tokens = sum(weight * times.output_tokens for weight, times in parts)
        output_ms = sum(weight * times.output_ms for weight, times in parts)
        latency_ms = sum(weight * times.first_token_ms for weight, times in parts) / answers
        return Speed(
            latency_ms=round(latency_ms),
            tokens_per_s=tokens * 1000 / output_ms if tokens and output_ms else None,
            output_tokens=round(tokens / answers),
            # A provider may report more cached tokens than prompt tokens.
            cached_share=min(round(cached / prompts, 3), 1.0) if prompts else None,
            answers=round(answers),
            since_s=since_s,
        )


class _Read(Struct, frozen=True):
    at_s: float
    """Monotonic second of the read."""
    windows: MeasuredWindows | None


class DynamoSpeeds:
    """Implements the methods of `stores.ports.base.CooldownStore` for speeds."""

    def __init__(self, client: AwsCaller, table: str, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock
        self._cache: dict[str, _Read] = {}
        self._unwritten: dict[str, AnswerTime] = {}
        self._written_s: dict[str, float] = {}

    def add(self, endpoint_id: str, times: AnswerTime) -> bool:
        """Add an answer to this instance's sums; return True if the sums are due to be written."""
        before = self._unwritten.get(endpoint_id)
        self._unwritten[endpoint_id] = times if before is None else before.plus(times)
        written_s = self._written_s.get(endpoint_id, float("-inf"))
        return self._clock.monotonic_s() >= written_s + WRITE_EVERY_S

    async def write(self, endpoint_id: str) -> None:
        """Write and clear the sums for an endpoint; a failed write loses the sums."""
        times = self._unwritten.pop(endpoint_id, None)
        if times is None:
            return
        self._written_s[endpoint_id] = self._clock.monotonic_s()
        window_s = window_of(self._clock.now_s())
        values = {
            ":w": number(window_s),
            ":n": number(times.answers),
            ":f": number(times.first_token_ms),
            ":t": number(times.output_tokens),
            ":d": number(times.output_ms),
            ":i": number(times.prompt_tokens),
            ":c": number(times.cached_tokens),
        }
        bounds = {
            ":zero": number(0),
            ":few": number(WINDOW_ANSWERS_MIN),
            ":old": number(window_s - SPEED_LASTS_S),
        }
        # The fourth attempt succeeds if another instance has just begun a window.
        for write in (SPEED_MORE, SPEED_NEXT, SPEED_FIRST, SPEED_MORE):
            given = values if write is SPEED_FIRST else values | bounds
            request = write.build(self._table, speed_key(endpoint_id), given)
            try:
                await self._client.call("UpdateItem", request, attempts_max=1)
            except ConditionFailed:
                continue
            except StoreUnavailable:
                pass
            return

    async def find(self, endpoint_ids: Collection[str]) -> Mapping[str, Speed]:
        """Return the speeds of the measured endpoints, from reads of the last half minute."""
        now_s = self._clock.monotonic_s()
        unread = [
            endpoint_id
            for endpoint_id in endpoint_ids
            if endpoint_id not in self._cache
            or now_s >= self._cache[endpoint_id].at_s + _READ_FOR_S
        ]
        if unread:
            await self._read(unread)
        return select_measured(
            {endpoint_id: self._cache[endpoint_id].windows for endpoint_id in endpoint_ids},
            self._clock.now_s(),
        )

    async def _read(self, endpoint_ids: Collection[str]) -> None:
        sent_s = self._clock.monotonic_s()
        keys = [speed_key(endpoint_id) for endpoint_id in endpoint_ids]
        windows = await read_by_endpoint(self._client, self._table, keys, _read_windows)
        for endpoint_id in endpoint_ids:
            self._cache[endpoint_id] = _Read(sent_s, windows.get(endpoint_id))


async def read_by_endpoint(
    client: AwsCaller, table: str, keys: Sequence[Item], read: Callable[[Item], _Decoded]
) -> dict[str, _Decoded]:
    """Return the decoded items by endpoint, skipping corrupt ones; empty if the read fails.

    Routing fails open: without speeds and cooldowns, requests still reach endpoints that may work.
    """
    try:
        async with asyncio.timeout(_READ_LIMIT_S):
            items = await get_items(client, table, keys)
    except (StoreUnavailable, TimeoutError):
        return {}
    decoded, _ = decode_items(lambda item: (endpoint_of_cooldown(item), read(item)), items)
    return dict(decoded)


def window_of(now_s: float) -> int:
    """Return the Unix second at which the window that contains a time begins."""
    return int(now_s) // WINDOW_S * WINDOW_S


def select_measured(
    windows: Mapping[str, MeasuredWindows | None], now_s: float
) -> dict[str, Speed]:
    """Return the current speeds of the endpoints that have one."""
    speeds = {name: measured.speed(now_s) for name, measured in windows.items() if measured}
    return {name: speed for name, speed in speeds.items() if speed}


def _read_windows(item: Item) -> MeasuredWindows:
    before_s = read_optional_number(item, SpeedItem.BEFORE)
    return MeasuredWindows(
        since_s=read_number(item, SpeedItem.SINCE),
        times=AnswerTime(
            # Sums are divided by this number, so a corrupt 0 is replaced with 1.
            answers=max(1, read_number(item, SpeedItem.ANSWERS)),
            first_token_ms=read_number(item, SpeedItem.LATENCY),
            output_tokens=read_number(item, SpeedItem.TOKENS),
            output_ms=read_number(item, SpeedItem.DURATION),
            prompt_tokens=read_optional_number(item, SpeedItem.PROMPT) or 0,
            cached_tokens=read_optional_number(item, SpeedItem.CACHED) or 0,
        ),
        before_s=before_s or 0,
        before=None
        if before_s is None
        else AnswerTime(
            answers=read_number(item, SpeedItem.BEFORE_ANSWERS),
            first_token_ms=read_number(item, SpeedItem.BEFORE_LATENCY),
            output_tokens=read_number(item, SpeedItem.BEFORE_TOKENS),
            output_ms=read_number(item, SpeedItem.BEFORE_DURATION),
            prompt_tokens=read_optional_number(item, SpeedItem.BEFORE_PROMPT) or 0,
            cached_tokens=read_optional_number(item, SpeedItem.BEFORE_CACHED) or 0,
        ),
    )
