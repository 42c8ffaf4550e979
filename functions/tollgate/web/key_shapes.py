"""The bodies of the key routes; OpenRouter's names where it has them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self

from msgspec.structs import replace
from pydantic import BaseModel, Field, model_validator

from tollgate.core.limits import Period
from tollgate.core.money import nano_usd, usd
from tollgate.core.principal import KeyRole
from tollgate.routing.schema import KeyTierSection
from tollgate.stores.administration import KeySettings, KeySummary, NewKey, OldSecret
from tollgate.stores.rules.account import HOLDS_MAX
from tollgate.stores.rules.periods import PERIODS
from tollgate.web.shapes import Body, Moment, PositiveUsd, Unreadable, Usd, moment

KeyLabel = Annotated[str, Field(min_length=1, max_length=64)]
ContentDays = Annotated[
    Literal[1, 7, 30, 90],
    Field(description="for how long prompts and answers are kept; null: not at all"),
]
# More requests per minute than one key sends.
_RATE_MAX: Final = 1_000_000
# What a change of a key takes over as it is.
_PLAIN: Final = frozenset(
    {
        "disabled",
        "tier",
        "requests_per_minute",
        "burst",
        "tokens_per_minute",
        "concurrency",
        "content_days",
    }
)


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


class Labels(Body):
    """What spending is grouped by."""

    team: KeyLabel | None = None
    member: KeyLabel | None = None
    environment: KeyLabel | None = None

    def by_name(self) -> dict[str, str]:
        """The labels that are set."""
        return {name: label for name, label in self if label is not None}


class NewKeyBody(Body):
    """A key to create."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    role: KeyRole = "inference"
    tier: Annotated[str, Field(max_length=64)] | None = None
    models: list[Annotated[str, Field(max_length=128)]] | None = Field(
        None, max_length=100, description="globs of model slugs; null allows all"
    )
    limits: Limits = Limits()
    requests_per_minute: Annotated[int, Field(ge=1, le=_RATE_MAX)] | None = Field(
        None, description="null: 60, or all that a tier with a rate of its own allows"
    )
    burst: Annotated[int, Field(ge=1, le=_RATE_MAX)] | None = Field(
        None, description="null: 120, or all that a tier with a rate of its own allows"
    )
    tokens_per_minute: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    concurrency: Annotated[int, Field(ge=1, le=HOLDS_MAX)] | None = None
    expires_at: Moment | None = None
    labels: Labels = Labels()
    content_days: ContentDays | None = None

    def new_key(self, workspace_id: str, tiers: Mapping[str, KeyTierSection]) -> NewKey:
        """The key as the store takes it; what its tier will limit it does not limit itself."""
        tier = tiers.get(self.tier) if self.tier else None
        is_rated = tier is not None and tier.rpm is not None
        return NewKey(
            workspace_id=workspace_id,
            label=self.name,
            role=self.role,
            tier=self.tier,
            models=None if self.models is None else tuple(self.models),
            limits_nano_usd=self.limits.nano_usd(),
            requests_per_minute=self.requests_per_minute or (_RATE_MAX if is_rated else 60),
            burst=self.burst or (_RATE_MAX if is_rated else 120),
            tokens_per_minute=self.tokens_per_minute,
            concurrency=self.concurrency,
            expires_s=_second(self.expires_at),
            labels=self.labels.by_name(),
            content_days=self.content_days,
        )


class KeyChangeBody(Body):
    """What is to change of a key: fields that are left out stay, null takes a limit away."""

    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    disabled: bool | None = None
    tier: Annotated[str, Field(max_length=64)] | None = None
    models: list[Annotated[str, Field(max_length=128)]] | None = Field(None, max_length=100)
    limits: Limits | None = Field(None, description="periods that are left out stay")
    requests_per_minute: Annotated[int, Field(ge=1, le=_RATE_MAX)] | None = None
    burst: Annotated[int, Field(ge=1, le=_RATE_MAX)] | None = None
    tokens_per_minute: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    concurrency: Annotated[int, Field(ge=1, le=HOLDS_MAX)] | None = None
    expires_at: Moment | None = None
    labels: Labels | None = Field(None, description="labels that are left out stay")
    content_days: ContentDays | None = None

    @model_validator(mode="after")
    def _refuse_null(self) -> Self:
        for name in ("name", "disabled", "limits", "requests_per_minute", "burst", "labels"):
            if name in self.model_fields_set and getattr(self, name) is None:
                raise ValueError(f"{name} cannot be null")
        return self

    def edit(self, settings: KeySettings) -> KeySettings:
        """The settings with what this changes."""
        sent = self.model_fields_set
        limits = dict(settings.limits_nano_usd)
        if self.limits is not None:
            limits |= self.limits.nano_usd()
            for period in PERIODS:
                if period in self.limits.model_fields_set and not getattr(self.limits, period):
                    limits.pop(period, None)
        labels = dict(settings.labels)
        if self.labels is not None:
            labels |= self.labels.by_name()
            labels = {
                name: label
                for name, label in labels.items()
                if name in self.labels.by_name() or name not in self.labels.model_fields_set
            }
        changed: dict[str, Any] = {name: getattr(self, name) for name in _PLAIN & sent}
        if "name" in sent:
            changed["label"] = self.name
        if "models" in sent:
            changed["models"] = None if self.models is None else tuple(self.models)
        if "expires_at" in sent:
            changed["expires_s"] = _second(self.expires_at)
        return replace(settings, **changed, limits_nano_usd=limits, labels=labels)


class RotationBody(Body):
    """How long a key's old secret still works beside the new one."""

    grace_s: Annotated[int, Field(ge=0, le=30 * 86_400)] = 86_400


class OldSecretObject(BaseModel):
    """The secret from before a key was rotated, while it works."""

    label: str = Field(description="its last characters")
    expires_at: datetime
    last_used_at: datetime | None

    @classmethod
    def of(cls, old: OldSecret) -> "OldSecretObject":
        """The secret as it is shown."""
        return cls(
            label=f"…{old.last_four}",
            expires_at=moment(old.expires_s),
            last_used_at=_moment_or_none(old.last_used_s),
        )


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
    limits_usage: dict[Period, Usd] = Field(description="spent in each running period")
    requests_per_minute: int
    burst: int
    tokens_per_minute: int | None
    concurrency: int | None
    labels: dict[str, str]
    content_days: int | None
    last_used_at: datetime | None
    old_secret: OldSecretObject | None

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
            expires_at=_moment_or_none(key.expires_s),
            tier=key.tier,
            models=None if key.models is None else list(key.models),
            limits={period: usd(limit) for period, limit in key.limits_nano_usd.items()},
            limits_remaining={
                period: usd(remaining) for period, remaining in key.remaining_nano_usd.items()
            },
            usage=usd(key.spent_nano_usd),
            held=usd(key.held_nano_usd),
            limits_usage={period: usd(used) for period, used in key.used_nano_usd.items()},
            requests_per_minute=key.requests_per_minute,
            burst=key.burst,
            tokens_per_minute=key.tokens_per_minute,
            concurrency=key.concurrency,
            labels=dict(key.labels),
            content_days=key.content_days,
            last_used_at=_moment_or_none(key.last_used_s),
            old_secret=OldSecretObject.of(key.old_secret) if key.old_secret else None,
        )


class KeyReply(BaseModel):
    """One key."""

    data: KeyObject


class NewKeyReply(KeyReply):
    """A new key with its secret, which is shown this once."""

    key: str


class KeysReply(BaseModel):
    """Keys of a workspace, oldest first; `next_cursor` asks for those after them."""

    data: list[KeyObject]
    next_cursor: str | None
    unreadable: Unreadable


class DeletedKeyReply(BaseModel):
    """Whether a key is gone: while one of its requests runs it is refused, but still there."""

    id: str
    deleted: bool


def _second(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp())


def _moment_or_none(unix_s: int | None) -> datetime | None:
    return None if unix_s is None else moment(unix_s)
