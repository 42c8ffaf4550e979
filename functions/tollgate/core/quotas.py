"""Quotas of a key: limits on requests, tokens or dollars in a window, for all or some models."""

import datetime as dt
import re
from collections.abc import Collection
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, Literal, get_args

from msgspec import Struct, convert

from tollgate.core.clock import DAY_S
from tollgate.core.money.amounts import nano_usd, usd_text

QuotaUnit = Literal["requests", "tokens", "usd"]
QuotaWindow = Literal["second", "minute", "hour", "day", "week", "month"]
# A hold's write checks every quota, and each counter takes about 45 bytes of the key's state, which
# costs one write unit per KB.
QUOTAS_MAX: Final = 10
# Longest duration of a window, in seconds.
QUOTA_WINDOW_S: Final[dict[QuotaWindow, int]] = {
    "second": 1,
    "minute": 60,
    "hour": 3_600,
    "day": DAY_S,
    "week": 7 * DAY_S,
    "month": 31 * DAY_S,
}
# The Unix epoch was a Thursday; weeks begin on Monday.
_FIRST_MONDAY_S: Final = 4 * DAY_S
_UNITS: Final = "|".join(get_args(QuotaUnit))
_WINDOWS: Final = "|".join(get_args(QuotaWindow))
_QUOTA: Final = re.compile(
    rf"({_UNITS})/({_WINDOWS})=([0-9]{{1,12}}(?:\.[0-9]{{1,9}})?)(?:@([^\s,@]{{1,100}}))?", re.ASCII
)


class Quota(Struct, frozen=True, kw_only=True):
    """A limit that counts from the beginning of each window."""

    unit: QuotaUnit
    per: QuotaWindow
    limit: int
    """Number of requests or tokens, or nano-dollars."""
    models: str | None = None
    """Glob of the models whose requests count; None for all."""

    @classmethod
    def named(cls, unit: str, per: str, models: str | None, *, limit: int = 0) -> "Quota":
        """Return the quota with these parts; raise ValueError if a unit or window is unknown."""
        return convert({"unit": unit, "per": per, "limit": limit, "models": models}, cls)

    @property
    def text(self) -> str:
        """The quota as the key states it, such as `usd/day=5@anthropic/*`."""
        limit = usd_text(self.limit) if self.unit == "usd" else str(self.limit)
        models = "" if self.models is None else f"@{self.models}"
        return f"{self.unit}/{self.per}={limit}{models}"

    def covers(self, model: str | None) -> bool:
        """Return True if requests to a model count."""
        return self.models is None or (model is not None and fnmatchcase(model, self.models))

    def covers_any(self, models: Collection[str]) -> bool:
        """Return True if requests to at least one of the models count."""
        return self.models is None or any(map(self.covers, models))

    def begins_s(self, second: int) -> int:
        """Return the first Unix second of the UTC window that contains a Unix second."""
        if self.per == "month":
            day = dt.datetime.fromtimestamp(second, dt.UTC)
            return int(dt.datetime(day.year, day.month, 1, tzinfo=dt.UTC).timestamp())
        shift = _FIRST_MONDAY_S if self.per == "week" else 0
        return second - (second - shift) % QUOTA_WINDOW_S[self.per]

    def ends_s(self, second: int) -> int:
        """Return the Unix second at which the next window begins."""
        ends = self.begins_s(second) + QUOTA_WINDOW_S[self.per]
        return self.begins_s(ends) if self.per == "month" else ends


class QuotaHold(Struct, frozen=True, kw_only=True):
    """The part of a hold that a quota counts."""

    quota: Quota
    name: str
    """Name of the counter, which differs from window to window."""
    taken: int


@lru_cache(maxsize=1024)
def parse_quotas(text: str | None) -> tuple[Quota, ...]:
    """Return the quotas in a list such as `requests/hour=100,usd/day=5@anthropic/*`.

    Raises ValueError with the part that is malformed or repeated.
    """
    quotas: dict[tuple[QuotaUnit, QuotaWindow, str | None], Quota] = {}
    parts = [part.strip() for part in text.split(",")] if text else []
    if len(parts) > QUOTAS_MAX:
        raise ValueError(f"there are more than {QUOTAS_MAX}")
    for part in parts:
        quota = _parse(part)
        place = (quota.unit, quota.per, quota.models)
        if place in quotas:
            raise ValueError(f"{part!r} repeats the unit, window and models of another quota")
        quotas[place] = quota
    return tuple(quotas.values())


def _parse(part: str) -> Quota:
    found = _QUOTA.fullmatch(part)
    if found is None:
        raise ValueError(f"{part!r} is malformed")
    unit, per, amount = found[1], found[2], Decimal(found[3])
    if unit != "usd" and amount != amount.to_integral_value():
        raise ValueError(f"{part!r} needs a whole number")
    limit = nano_usd(amount) if unit == "usd" else int(amount)
    if limit <= 0:
        raise ValueError(f"{part!r} must be more than 0")
    return Quota.named(unit, per, found[4], limit=limit)
