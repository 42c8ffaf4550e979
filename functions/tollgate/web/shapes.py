"""The bodies of the api routes; OpenRouter's names where it has them."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer

# A JSON number: the shortest one that reads back as the same amount, to the nano-dollar, for
# amounts under a million dollars. Sums are never made of it.
Usd = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]
# With a time zone, and such that it has a year in every other one.
Moment = Annotated[
    AwareDatetime,
    Field(ge=datetime(2000, 1, 1, tzinfo=UTC), le=datetime(9999, 1, 1, tzinfo=UTC)),
]
Unreadable = Annotated[
    list[str], Field(description="stored items that make no sense, which this page leaves out")
]
PositiveUsd = Annotated[Decimal, Field(gt=0, le=1_000_000, decimal_places=9)]


class Body(BaseModel):
    """A request body in which every field is known."""

    model_config = ConfigDict(extra="forbid")


def moment(unix_s: int) -> datetime:
    """A Unix second as JSON shows it."""
    return datetime.fromtimestamp(unix_s, tz=UTC)
