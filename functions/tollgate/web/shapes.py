"""Field types shared by the bodies of the API routes.

Fields that exist at OpenRouter have the same names as there.
"""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer

# A JSON number: the shortest float that reads back as the same amount, exact to the nano-dollar for
# amounts under a million dollars. Sums are computed from exact values, never from these floats.
Usd = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]
# A datetime with a time zone; the bounds keep the year valid in every other time zone as well.
Moment = Annotated[
    AwareDatetime, Field(ge=datetime(2000, 1, 1, tzinfo=UTC), le=datetime(9999, 1, 1, tzinfo=UTC))
]
Unreadable = Annotated[list[str], Field(description="corrupt stored items, which this page skips")]
PositiveUsd = Annotated[Decimal, Field(gt=0, le=1_000_000, decimal_places=9)]


class Body(BaseModel):
    """A request body that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid")


def moment(unix_s: int) -> datetime:
    """Return a Unix second as a UTC datetime, which JSON shows as ISO 8601."""
    return datetime.fromtimestamp(unix_s, tz=UTC)


def moment_or_none(unix_s: int | None) -> datetime | None:
    """Return a Unix second as a UTC datetime; None if the argument is None."""
    return None if unix_s is None else moment(unix_s)
