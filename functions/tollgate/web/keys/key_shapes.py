"""Bodies of the key routes, with OpenRouter's field names where OpenRouter has them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Self, TypeVar

from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from tollgate.core.clock import DAY_S
from tollgate.core.errors import invalid_request
from tollgate.core.ids import created_s
from tollgate.core.limits import Period
from tollgate.core.money.amounts import nano_usd, usd
from tollgate.core.principal import KeyRole
from tollgate.core.quotas import Quota, QuotaUnit, QuotaWindow, parse_quotas
from tollgate.routing.schema import KeyTierSection
from tollgate.stores.ports.administration import (
    KEYS_PAGE_MAX,
    CreatedKey,
    KeySummary,
    NewKey,
    OldSecret,
)
from tollgate.stores.rules.key_settings import PLAIN_SETTINGS, RATE_MAX, KeySettings
from tollgate.stores.rules.periods import PERIODS
from tollgate.stores.rules.quotas import counter_name
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S
from tollgate.web.shapes import Body, Moment, PositiveUsd, Unreadable, Usd, moment, moment_or_none

KeyLabel = Annotated[str, Field(min_length=1, max_length=64)]
KeyText = Annotated[str, Field(min_length=1, max_length=100)]
_Model = TypeVar("_Model", bound=BaseModel)


def _take_settings(model: type[_Model]) -> type[_Model]:
    """Add every plain setting to a request body; a setting that is left out, or null, is None."""
    fields: dict[str, Any] = {
        name: (
            (PositiveUsd if setting.is_usd else setting.offer.accepted or setting.type) | None,
            Field(
                None,
                ge=setting.offer.lowest,
                le=setting.offer.highest,
                max_length=setting.offer.length_max,
                description=setting.offer.text,
            ),
        )
        for name, setting in PLAIN_SETTINGS.items()
    }
    return create_model(model.__name__, __base__=model, __doc__=model.__doc__, **fields)


def _show_settings(model: type[_Model]) -> type[_Model]:
    """Add every plain setting to a reply, where all settings are present."""
    fields: dict[str, Any] = {
        name: (
            Usd | None if setting.is_usd else setting.type,
            Field(description=setting.offer.text),
        )
        for name, setting in PLAIN_SETTINGS.items()
    }
    return create_model(model.__name__, __base__=model, __doc__=model.__doc__, **fields)


class Limits(Body):
    """Spending limits in USD, each for its own UTC period; weeks begin on Monday."""

    day: PositiveUsd | None = None
    week: PositiveUsd | None = None
    month: PositiveUsd | None = None
    total: PositiveUsd | None = None

    def nano_usd(self) -> dict[Period, int]:
        """Return the limits that are set, in nano-dollars."""
        return {
            period: nano_usd(limit)
            for period in PERIODS
            if (limit := getattr(self, period)) is not None
        }

    def change(self, limits: Mapping[Period, int]) -> dict[Period, int]:
        """Return `limits` with the body's changes applied; null removes that period's limit."""
        unchanged = {
            period: limit for period, limit in limits.items() if period not in self.model_fields_set
        }
        return {**unchanged, **self.nano_usd()}


class Labels(Body):
    """Labels by which spending is grouped."""

    team: KeyLabel | None = None
    member: KeyLabel | None = None
    environment: KeyLabel | None = None

    def by_name(self) -> dict[str, str]:
        """Return the labels that are set."""
        return {name: label for name, label in self if label is not None}


@_take_settings
class NewKeyBody(Body):
    """A key to create."""

    name: KeyText
    role: KeyRole = "inference"
    models: list[Annotated[str, Field(max_length=128)]] | None = Field(
        None, max_length=100, description="globs of model slugs; null allows all"
    )
    limits: Limits = Limits()
    expires_at: Moment | None = None
    labels: Labels = Labels()

    def new_key(self, workspace_id: str, tiers: Mapping[str, KeyTierSection]) -> NewKey:
        """Return the key as the store expects it.

        A tier that has its own rate replaces the default rate of a key, unless the body states one.
        Raises RequestError for a tier that is not in `tiers`.
        """
        chosen: dict[str, Any] = {
            name: value for name in PLAIN_SETTINGS if (value := getattr(self, name)) is not None
        }
        refuse_unknown_tier(chosen.get("tier"), tiers)
        tier = tiers.get(chosen.get("tier", ""))
        if tier is not None and tier.rpm is not None:
            chosen = {"requests_per_minute": RATE_MAX, "burst": RATE_MAX, **chosen}
        return NewKey(
            **chosen,
            workspace_id=workspace_id,
            label=self.name,
            role=self.role,
            models=None if self.models is None else tuple(self.models),
            limits_nano_usd=self.limits.nano_usd(),
            expires_s=_second(self.expires_at),
            labels=self.labels.by_name(),
        )


@_take_settings
class KeySettingsBody(Body):
    """Settings of a key except its name: fields that are left out stay, null removes a limit."""

    disabled: bool | None = None
    models: list[Annotated[str, Field(max_length=128)]] | None = Field(None, max_length=100)
    limits: Limits | None = Field(None, description="periods that are left out stay the same")
    expires_at: Moment | None = None
    labels: Labels | None = Field(None, description="labels that are left out stay the same")

    @model_validator(mode="after")
    def _refuse_null(self) -> Self:
        needed = [name for name, setting in PLAIN_SETTINGS.items() if not setting.is_optional]
        for name in ("name", "disabled", "limits", "labels", *needed):
            if name in self.model_fields_set and getattr(self, name) is None:
                raise ValueError(f"{name} cannot be null")
        return self


class KeyChangeBody(KeySettingsBody):
    """Changes of a key: fields that are left out stay, null removes a limit."""

    name: KeyText | None = None

    def plain_settings(self) -> dict[str, Any]:
        """Return the plain settings that the body changes, with their new values."""
        return {
            name: getattr(self, name) for name in PLAIN_SETTINGS if name in self.model_fields_set
        }

    def edit(self, settings: KeySettings) -> KeySettings:
        """Return settings with the changes of the body."""
        sent = self.model_fields_set
        limits = settings.limits_nano_usd
        if self.limits is not None:
            limits = self.limits.change(limits)
        labels = dict(settings.labels)
        if self.labels is not None:
            sent_labels = self.labels.model_fields_set
            labels = {name: label for name, label in labels.items() if name not in sent_labels}
            labels |= self.labels.by_name()
        changed = self.plain_settings()
        if "name" in sent:
            changed["label"] = self.name
        if "disabled" in sent:
            changed["disabled"] = self.disabled
        if "models" in sent:
            changed["models"] = None if self.models is None else tuple(self.models)
        if "expires_at" in sent:
            changed["expires_s"] = _second(self.expires_at)
        return replace(settings, **changed, limits_nano_usd=limits, labels=labels)


class RotationBody(Body):
    """The time for which a key's old secret remains valid."""

    grace_s: Annotated[int, Field(ge=0, le=30 * DAY_S)] = DAY_S


class OldSecretObject(BaseModel):
    """The secret of a key from before the last rotation, while it is still valid."""

    label: str = Field(description="the secret's last characters")
    expires_at: datetime
    last_used_at: datetime | None

    @classmethod
    def of(cls, old: OldSecret) -> "OldSecretObject":
        """Build the object from a stored secret."""
        return cls(
            label=f"…{old.last_four}",
            expires_at=moment(old.expires_s),
            last_used_at=moment_or_none(old.last_used_s),
        )


class HoldsObject(BaseModel):
    """The generations whose holds exist: in flight, or left behind by a process that ended."""

    generations: int
    oldest: str | None = Field(description="id of the oldest generation; null without holds")
    oldest_since: datetime | None
    expires_at: datetime | None = Field(
        description="time after which the next sweep settles or releases the oldest hold, if its "
        "process has not"
    )

    @classmethod
    def of(cls, hold_ids: Sequence[str]) -> "HoldsObject":
        """Describe the holds of these generations, oldest first."""
        oldest = hold_ids[0] if hold_ids else None
        since_s = None if oldest is None else created_s(oldest)
        return cls(
            generations=len(hold_ids),
            oldest=None if oldest is None else f"gen-{oldest}",
            oldest_since=moment_or_none(since_s),
            expires_at=None if since_s is None else moment(since_s + HOLD_LIFETIME_S),
        )


class QuotaObject(BaseModel):
    """A quota of a key in its current window."""

    unit: QuotaUnit
    per: QuotaWindow
    models: str | None = Field(description="glob of the models whose requests count; null for all")
    limit: int | Usd
    used: int | Usd = Field(description="spent and held")
    resets_at: datetime

    @classmethod
    def of(cls, quota: Quota, counters: Mapping[str, int], second: int) -> "QuotaObject":
        """Build the object from a key's quota and its counters."""
        used = counters.get(counter_name(quota, second), 0)
        amounts = (quota.limit, used)
        limit, spent = map(usd, amounts) if quota.unit == "usd" else amounts
        return cls(
            unit=quota.unit,
            per=quota.per,
            models=quota.models,
            limit=limit,
            used=spent,
            resets_at=moment(quota.ends_s(second)),
        )


@_show_settings
class KeyObject(BaseModel):
    """A key, without its secret."""

    id: str
    name: str
    label: str = Field(description="the secret's first and last characters")
    role: KeyRole
    disabled: bool
    created_at: datetime
    secret_created_at: datetime = Field(description="from then on the workspace's `key_days` count")
    expires_at: datetime | None
    models: list[str] | None
    limits: dict[Period, Usd]
    limits_remaining: dict[Period, Usd] = Field(
        description="amounts that are neither spent nor held"
    )
    limits_reset_at: dict[Period, datetime | None] = Field(
        description="time at which each limit is renewed; null if it never is"
    )
    usage: Usd
    held: Usd
    holds: HoldsObject
    limits_usage: dict[Period, Usd] = Field(description="spent in each current period")
    quotas_usage: list[QuotaObject] = Field(description="each of `quotas`")
    labels: dict[str, str]
    last_used_at: datetime | None
    last_address: str | None = Field(
        description="network address of the last use, or of one at most ten minutes earlier; "
        "null unless `keep_address` is `last`"
    )
    last_address_at: datetime | None
    old_secret: OldSecretObject | None

    @classmethod
    def of(cls, key: KeySummary) -> "KeyObject":
        """Build the object from a stored key."""
        return cls(
            id=key.id,
            name=key.label,
            label=f"{key.prefix}…{key.last_four}",
            role=key.role,
            disabled=key.disabled,
            created_at=moment(key.created_s),
            secret_created_at=moment(key.secret_created_s),
            expires_at=moment_or_none(key.expires_s),
            models=None if key.models is None else list(key.models),
            limits={period: usd(limit) for period, limit in key.limits_nano_usd.items()},
            limits_remaining={
                period: usd(remaining) for period, remaining in key.remaining_nano_usd.items()
            },
            limits_reset_at={
                period: moment_or_none(resets_s) for period, resets_s in key.resets_s.items()
            },
            usage=usd(key.spent_nano_usd),
            held=usd(key.held_nano_usd),
            holds=HoldsObject.of(key.hold_ids),
            limits_usage={period: usd(used) for period, used in key.used_nano_usd.items()},
            quotas_usage=[
                QuotaObject.of(quota, key.counters, key.read_s)
                for quota in parse_quotas(key.quotas)
            ],
            labels=dict(key.labels),
            last_used_at=moment_or_none(key.last_used_s),
            last_address=key.last_address,
            last_address_at=moment_or_none(key.last_address_s),
            old_secret=OldSecretObject.of(key.old_secret) if key.old_secret else None,
            **{name: getattr(key, name) for name in PLAIN_SETTINGS},
        )


class KeyReply(BaseModel):
    """One key."""

    data: KeyObject


class NewKeyReply(KeyReply):
    """A new key with its secret, which is shown only once."""

    key: str

    @classmethod
    def of(cls, created: CreatedKey) -> "NewKeyReply":
        """Return the reply to a request that created a secret."""
        return cls(data=KeyObject.of(created.summary), key=created.secret)


class KeysQuery(BaseModel):
    """Filter of keys, and the page to return."""

    model_config = ConfigDict(extra="ignore")

    team: Annotated[str, Field(max_length=64)] | None = Field(
        None, description="id of the team that a key belongs to"
    )
    member: Annotated[str, Field(max_length=128)] | None = Field(
        None, description="id of the member that a key belongs to"
    )
    cursor: str | None = Field(None, description="the `next_cursor` of the previous page")
    limit: Annotated[int, Field(ge=1, le=KEYS_PAGE_MAX)] = KEYS_PAGE_MAX

    def accepts(self, key: KeySummary) -> bool:
        """Return whether the filter admits a key."""
        return self.team in (None, key.team_id) and self.member in (None, key.member_id)


class KeysReply(BaseModel):
    """Keys of a workspace, oldest first; `next_cursor` is the `cursor` of the next page."""

    data: list[KeyObject]
    next_cursor: str | None
    unreadable: Unreadable


class DeletedKeyReply(BaseModel):
    """The state of a deletion; while a request runs, the key is refused but not yet deleted."""

    id: str
    deleted: bool


def refuse_unknown_tier(tier: str | None, tiers: Mapping[str, KeyTierSection]) -> None:
    """Raise RequestError if `tier` is not in `tiers`; None means no tier."""
    if tier is not None and tier not in tiers:
        known = f"has {', '.join(sorted(tiers))}" if tiers else "has no tiers"
        raise invalid_request(f"There is no tier {tier!r}; the live catalog {known}.", "tier")


def _second(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp())
