"""The bodies of the api routes; OpenRouter's names where it has them."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer

from tollgate.core.money import nano_usd, usd
from tollgate.core.principal import KeyRole
from tollgate.stores.base import Balance, KeySummary, NewKey, Period

# A JSON number: the shortest one that reads back as the same amount, to the nano-dollar, for
# amounts under a million dollars. Sums are never made of it.
Usd = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]
# With a time zone, and such that it has a year in every other one.
Moment = Annotated[
    AwareDatetime,
    Field(ge=datetime(2000, 1, 1, tzinfo=UTC), le=datetime(9999, 1, 1, tzinfo=UTC)),
]
PositiveUsd = Annotated[Decimal, Field(gt=0, le=1_000_000, decimal_places=9)]


class Body(BaseModel):
    """A request body in which every field is known."""

    model_config = ConfigDict(extra="forbid")


class Limits(Body):
    """Spending limits in USD, each counted over its own UTC period; weeks begin on Monday."""

    day: PositiveUsd | None = None
    week: PositiveUsd | None = None
    month: PositiveUsd | None = None
    total: PositiveUsd | None = None

    def nano_usd(self) -> dict[Period, int]:
        """The limits that are set, in nano-dollars."""
        periods: tuple[Period, ...] = ("day", "week", "month", "total")
        return {
            period: nano_usd(limit)
            for period in periods
            if (limit := getattr(self, period)) is not None
        }


class NewKeyBody(Body):
    """A key to create."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    role: KeyRole = "inference"
    tier: Annotated[str, Field(max_length=64)] | None = None
    models: list[Annotated[str, Field(max_length=128)]] | None = Field(
        None, max_length=100, description="globs of model slugs; null allows all"
    )
    limits: Limits = Limits()
    requests_per_minute: Annotated[int, Field(ge=1, le=1_000_000)] = 60
    burst: Annotated[int, Field(ge=1, le=1_000_000)] = 120
    concurrency: Annotated[int, Field(ge=1, le=10_000)] | None = None
    expires_at: Moment | None = None

    def new_key(self, workspace_id: str) -> NewKey:
        """The key as the store takes it."""
        return NewKey(
            workspace_id=workspace_id,
            label=self.name,
            role=self.role,
            tier=self.tier,
            models=None if self.models is None else tuple(self.models),
            limits_nano_usd=self.limits.nano_usd(),
            requests_per_minute=self.requests_per_minute,
            burst=self.burst,
            concurrency=self.concurrency,
            expires_s=int(self.expires_at.timestamp()) if self.expires_at else None,
        )


class KeyChangeBody(Body):
    """What may be changed of a key."""

    disabled: Literal[True]


class KeyObject(BaseModel):
    """A key, without its secret."""

    id: str
    name: str
    label: str = Field(description="the secret's first and last characters")
    role: KeyRole
    disabled: bool
    created_at: datetime
    expires_at: datetime | None
    tier: str | None
    models: list[str] | None
    limits: dict[Period, Usd]
    limits_remaining: dict[Period, Usd]
    usage: Usd
    held: Usd
    requests_per_minute: int | None

    @classmethod
    def of(cls, key: KeySummary) -> "KeyObject":
        """The key as it is shown."""
        return cls(
            id=key.id,
            name=key.label,
            label=f"{key.prefix}…{key.last_four}",
            role=key.role,
            disabled=key.disabled,
            created_at=moment(key.created_s),
            expires_at=None if key.expires_s is None else moment(key.expires_s),
            tier=key.tier,
            models=None if key.models is None else list(key.models),
            limits={period: usd(limit) for period, limit in key.limits_nano_usd.items()},
            limits_remaining={
                period: usd(remaining) for period, remaining in key.remaining_nano_usd.items()
            },
            usage=usd(key.spent_nano_usd),
            held=usd(key.held_nano_usd),
            requests_per_minute=key.requests_per_minute,
        )


class KeyReply(BaseModel):
    """One key."""

    data: KeyObject


class NewKeyReply(KeyReply):
    """A new key with its secret, which is shown this once."""

    key: str


class KeysReply(BaseModel):
    """The keys of a workspace, oldest first."""

    data: list[KeyObject]


class GrantBody(Body):
    """Credit to add; the same `id` adds it only once."""

    id: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9._:-]+$")]
    amount: PositiveUsd
    note: Annotated[str, Field(max_length=200)] = ""


class CreditsObject(BaseModel):
    """A workspace's money in USD: total_credits = available + held + total_usage."""

    total_credits: Usd
    total_usage: Usd
    available: Usd
    held: Usd

    @classmethod
    def of(cls, balance: Balance) -> "CreditsObject":
        """The balance as it is shown."""
        return cls(
            total_credits=usd(balance.granted_nano_usd),
            total_usage=usd(balance.spent_nano_usd),
            available=usd(balance.available_nano_usd),
            held=usd(balance.held_nano_usd),
        )


class CreditsReply(BaseModel):
    """A workspace's money."""

    data: CreditsObject


class GrantReply(CreditsReply):
    """The money after a grant; `granted` is false if that grant had been made before."""

    granted: bool


def moment(unix_s: int) -> datetime:
    """A Unix second as it is shown."""
    return datetime.fromtimestamp(unix_s, tz=UTC)
