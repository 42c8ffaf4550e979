"""Speeds of endpoints in DynamoDB: shared by all instances, best effort, failing open.

Every instance adds up the times of its answers and writes the sums from time to time, as one
addition to the endpoint's item. The item has two windows of half an hour; for a reader the earlier
one fades as the later one fills.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct

from tollgate.core.clock import DAY_S, Clock
from tollgate.core.speed import AnswerTime, Speed
from tollgate.stores.aws.attributes import Item, number
from tollgate.stores.aws.aws_json import AwsCaller
from tollgate.stores.aws.decoding import decode_items, read_number, read_optional_number
from tollgate.stores.aws.expressions import SPEED_FIRST, SPEED_MORE, SPEED_NEXT
from tollgate.stores.aws.failures import ConditionFailed, StoreUnavailable
from tollgate.stores.aws.items import SpeedItem
from tollgate.stores.aws.tables import endpoint_of_cooldown, get_items, speed_key

WINDOW_S: Final = 1_800
# An endpoint that nobody asked for a day has no speed.
SPEED_LASTS_S: Final = DAY_S
# An instance writes once in this time for each endpoint, and reads as rarely.
WRITE_EVERY_S: Final = 60.0
_READ_FOR_S: Final = 30.0
# A request waits no longer than this for the speeds.
_READ_LIMIT_S: Final = 0.5


class MeasuredWindows(Struct, frozen=True, kw_only=True):
    """The answers of an endpoint in its last window that had some, and in the one before."""

    since_s: int
    """Unix second at which the last window began."""
    times: AnswerTime
    before_s: int = 0
    before: AnswerTime | None = None

    def add(self, times: AnswerTime, now_s: float) -> "MeasuredWindows":
        """Return this with answers of now, which may begin another window."""
        since_s = window_of(now_s)
        if since_s == self.since_s:
            return MeasuredWindows(
                since_s=since_s,
                times=self.times.plus(times),
                before_s=self.before_s,
                before=self.before,
            )
        return MeasuredWindows(
            since_s=since_s, times=times, before_s=self.since_s, before=self.times
        )

    def speed(self, now_s: float) -> Speed | None:
        """Return the speed of now; None if the last answer is too old to say anything."""
        if now_s >= self.since_s + WINDOW_S + SPEED_LASTS_S:
            return None
        parts = [(1.0, self.times)]
        if self.before is not None and self.before_s == self.since_s - WINDOW_S:
            left = 1 - (now_s - self.since_s) / WINDOW_S
            if left > 0:
                parts.append((left, self.before))
        answers = sum(weight * each.answers for weight, each in parts)
        tokens = sum(weight * each.output_tokens for weight, each in parts)
        output_ms = sum(weight * each.output_ms for weight, each in parts)
        latency_ms = sum(weight * each.first_token_ms for weight, each in parts) / answers
        return Speed(
            latency_ms=round(latency_ms),
            tokens_per_s=tokens * 1000 / output_ms if tokens and output_ms else None,
        )


class _Read(Struct, frozen=True):
    # Monotonic second at which it was read.
    at_s: float
    windows: MeasuredWindows | None


class DynamoSpeeds:
    """The half of `stores.base.CooldownStore` that is about speeds."""

    def __init__(self, client: AwsCaller, table: str, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock
        self._cache: dict[str, _Read] = {}
        self._unwritten: dict[str, AnswerTime] = {}
        self._written_s: dict[str, float] = {}

    def add(self, endpoint_id: str, times: AnswerTime) -> bool:
        """Add the time of an answer to the sums of this instance; return whether they are due."""
        before = self._unwritten.get(endpoint_id)
        self._unwritten[endpoint_id] = times if before is None else before.plus(times)
        written_s = self._written_s.get(endpoint_id, float("-inf"))
        return self._clock.monotonic_s() >= written_s + WRITE_EVERY_S

    async def write(self, endpoint_id: str) -> None:
        """Write the sums of an endpoint and begin new ones; a write that fails loses them."""
        times = self._unwritten.pop(endpoint_id, None)
        if times is None:
            return
        self._written_s[endpoint_id] = self._clock.monotonic_s()
        payload = {
            "TableName": self._table,
            "Key": speed_key(endpoint_id),
            "ExpressionAttributeValues": {
                ":w": number(window_of(self._clock.now_s())),
                ":n": number(times.answers),
                ":f": number(times.first_token_ms),
                ":t": number(times.output_tokens),
                ":d": number(times.output_ms),
            },
        }
        # The fourth try is for a window that another instance began in between.
        for write in (SPEED_MORE, SPEED_NEXT, SPEED_FIRST, SPEED_MORE):
            try:
                await self._client.call(
                    "UpdateItem",
                    {
                        **payload,
                        "UpdateExpression": write.update,
                        "ConditionExpression": write.condition,
                    },
                    attempts_max=1,
                )
            except ConditionFailed:
                continue
            except StoreUnavailable:
                pass
            return

    async def find(self, endpoint_ids: Collection[str]) -> Mapping[str, Speed]:
        """Return the measured endpoints with their speeds, read half a minute ago at most."""
        now_s = self._clock.monotonic_s()
        unread = [
            each
            for each in endpoint_ids
            if each not in self._cache or now_s >= self._cache[each].at_s + _READ_FOR_S
        ]
        if unread:
            await self._read(unread)
        return select_measured(
            {each: self._cache[each].windows for each in endpoint_ids}, self._clock.now_s()
        )

    async def _read(self, endpoint_ids: Collection[str]) -> None:
        sent_s = self._clock.monotonic_s()
        items: list[Item] = []
        try:
            async with asyncio.timeout(_READ_LIMIT_S):
                keys = [speed_key(each) for each in endpoint_ids]
                items = await get_items(self._client, self._table, keys)
        except (StoreUnavailable, TimeoutError):
            # Fail open: without speeds a request is served in another order.
            items = []
        # An endpoint whose item is corrupt is not measured either.
        found, _ = decode_items(
            lambda item: (endpoint_of_cooldown(item), _read_windows(item)), items
        )
        windows = dict(found)
        for each in endpoint_ids:
            self._cache[each] = _Read(sent_s, windows.get(each))


def window_of(now_s: float) -> int:
    """Return the Unix second at which the window of a moment begins."""
    return int(now_s) // WINDOW_S * WINDOW_S


def select_measured(
    windows: Mapping[str, MeasuredWindows | None], now_s: float
) -> dict[str, Speed]:
    """Return the speeds of now of the endpoints that have one."""
    speeds = {name: each.speed(now_s) for name, each in windows.items() if each}
    return {name: speed for name, speed in speeds.items() if speed}


def _read_windows(item: Item) -> MeasuredWindows:
    before_s = read_optional_number(item, SpeedItem.BEFORE)
    return MeasuredWindows(
        since_s=read_number(item, SpeedItem.SINCE),
        times=AnswerTime(
            # At least one, so that nothing is divided by 0.
            answers=max(1, read_number(item, SpeedItem.ANSWERS)),
            first_token_ms=read_number(item, SpeedItem.LATENCY),
            output_tokens=read_number(item, SpeedItem.TOKENS),
            output_ms=read_number(item, SpeedItem.DURATION),
        ),
        before_s=before_s or 0,
        before=None
        if before_s is None
        else AnswerTime(
            answers=read_number(item, SpeedItem.BEFORE_ANSWERS),
            first_token_ms=read_number(item, SpeedItem.BEFORE_LATENCY),
            output_tokens=read_number(item, SpeedItem.BEFORE_TOKENS),
            output_ms=read_number(item, SpeedItem.BEFORE_DURATION),
        ),
    )
