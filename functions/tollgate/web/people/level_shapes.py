"""Bodies and replies about the limits of teams, members and keys, including the tightest limit."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, Field, create_model

from tollgate.core.limits import Level, Period
from tollgate.core.money.amounts import usd
from tollgate.routing.schema import KeyTierSection
from tollgate.stores.ports.administration import KeySummary
from tollgate.stores.ports.credit import Balance
from tollgate.stores.ports.people import LevelSpending, Member, Team
from tollgate.stores.rules.key_settings import PLAIN_SETTINGS, KeyOption
from tollgate.stores.rules.level_settings import LevelSettings
from tollgate.web.keys.key_shapes import HoldsObject, KeyObject, Limits, refuse_unknown_tier
from tollgate.web.shapes import Body, Usd, moment_or_none

_Level = TypeVar("_Level", bound=LevelSettings)
_Model = TypeVar("_Model", bound=BaseModel)
# Fields of a body that are not settings, or have a different type from the setting.
_NO_SETTINGS: Final = frozenset({"id", "limits"})


# Plain key settings that teams and members have as well; for these, every setting may be unset.
_PLAIN: Final = {
    name: setting.offer
    for name, setting in PLAIN_SETTINGS.items()
    if name in LevelSettings.__struct_fields__
}


def _take_plain(model: type[_Model]) -> type[_Model]:
    """Add the plain settings to a request body, with the same bounds as for keys."""
    fields: dict[str, Any] = {
        name: (
            _plain_type(name),
            Field(
                None,
                ge=offer.lowest,
                le=offer.highest,
                max_length=offer.length_max,
                description=_describe(offer),
            ),
        )
        for name, offer in _PLAIN.items()
    }
    return create_model(model.__name__, __base__=model, __doc__=model.__doc__, **fields)


def _show_plain(model: type[_Model]) -> type[_Model]:
    """Add the plain settings to a reply, where all settings are present."""
    fields: dict[str, Any] = {
        name: (_plain_type(name), Field(description=_describe(offer)))
        for name, offer in _PLAIN.items()
    }
    return create_model(model.__name__, __base__=model, __doc__=model.__doc__, **fields)


def _plain_type(name: str) -> Any:
    return PLAIN_SETTINGS[name].type | None


def _describe(offer: KeyOption) -> str:
    """Return the first sentence of a description; the other sentences apply only to keys."""
    return f"{offer.text.split('. ')[0].rstrip('.')}."


@_take_plain
class LevelBody(Body):
    """Settings of a team or a member. Fields that are left out do not change, and null removes a
    limit.
    """

    display_name: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        None, description="name that people see; null shows the id"
    )
    models: list[Annotated[str, Field(max_length=128)]] | None = Field(
        None, max_length=100, description="globs of model slugs; null allows all"
    )
    limits: Limits | None = Field(None, description="periods that are left out stay the same")

    def check_tier(self, tiers: Mapping[str, KeyTierSection]) -> None:
        """Raise RequestError for a tier that the live catalog does not have."""
        refuse_unknown_tier(self.changes().get("tier"), tiers)

    def changes(self) -> dict[str, Any]:
        """Return the settings that were sent, except the limits."""
        sent = {name: getattr(self, name) for name in self.model_fields_set - _NO_SETTINGS}
        if self.models is not None:
            sent["models"] = tuple(self.models)
        return sent

    def edit(self, settings: _Level) -> _Level:
        """Return settings with the changes from the body."""
        limits = settings.limits_nano_usd
        if self.limits is not None:
            limits = self.limits.change(limits)
        elif "limits" in self.model_fields_set:
            limits = {}
        return replace(settings, **self.changes(), limits_nano_usd=limits)


@_show_plain
class SpendingObject(BaseModel):
    """Limits in USD, with the remaining, spent and held amounts; weeks begin on Monday, in UTC."""

    limits: dict[Period, Usd]
    limits_remaining: dict[Period, Usd] = Field(
        description="amounts that are neither spent nor held"
    )
    limits_reset_at: dict[Period, datetime | None] = Field(
        description="time at which each limit is renewed; null if it never is"
    )
    limits_usage: dict[Period, Usd] = Field(
        description="spent in each current period; not counted without limits"
    )
    held: Usd
    holds: HoldsObject
    models: list[str] | None


def spending_fields(settings: LevelSettings, spending: LevelSpending) -> dict[str, Any]:
    """Return the fields of a SpendingObject."""
    return {
        "limits": {period: usd(limit) for period, limit in settings.limits_nano_usd.items()},
        "limits_remaining": {
            period: usd(rest) for period, rest in spending.remaining_nano_usd.items()
        },
        "limits_reset_at": {
            period: moment_or_none(resets_s) for period, resets_s in spending.resets_s.items()
        },
        "limits_usage": {period: usd(used) for period, used in spending.used_nano_usd.items()},
        "held": usd(spending.held_nano_usd),
        "holds": HoldsObject.of(spending.hold_ids),
        "models": None if settings.models is None else list(settings.models),
        **{name: getattr(settings, name) for name in _PLAIN},
    }


class LevelObject(SpendingObject):
    """The team or member of a key, whose limits also apply to the key's requests."""

    level: Level
    id: str
    display_name: str | None

    @classmethod
    def of(cls, level: Team | Member) -> "LevelObject":
        """Build the object from a stored team or member."""
        return cls(
            level="team" if isinstance(level, Team) else "member",
            id=level.id,
            display_name=level.display_name,
            **spending_fields(level, level.spending),
        )


class TightestObject(BaseModel):
    """The limit with the smallest remaining amount, in USD; a workspace's limit is its credit."""

    level: Level
    id: str
    kind: str = Field(description="day, week, month or total; credit for a workspace")
    limit: Usd = Field(description="for a workspace, the credit that was granted")
    remaining: Usd
    resets_at: datetime | None = Field(description="null for a limit that is never renewed")


class OwnKeyObject(KeyObject):
    """A key, with the levels whose limits also apply to its requests."""

    levels: list[LevelObject] = Field(
        description="the member and the team of the key, where it has them"
    )
    tightest: TightestObject


class OwnKeyReply(BaseModel):
    """The key of a request."""

    data: OwnKeyObject

    @classmethod
    def of(
        cls, key: KeySummary, levels: Sequence[Team | Member], balance: Balance
    ) -> "OwnKeyReply":
        """Build the reply from a key, its member and team, and its workspace's money."""
        data = OwnKeyObject(
            **dict(KeyObject.of(key)),
            levels=[LevelObject.of(level) for level in levels],
            tightest=_find_tightest(key, levels, balance),
        )
        return cls(data=data)


class _Left(Struct, frozen=True, kw_only=True):
    level: Level
    id: str
    kind: str
    limit_nano_usd: int
    nano_usd: int
    resets_s: int | None = None


def _find_tightest(
    key: KeySummary, levels: Sequence[Team | Member], balance: Balance
) -> TightestObject:
    """Return the limit with the smallest remaining amount among a key, its levels and its
    workspace.

    If several are equal, the one that is checked first is returned.
    """
    left = min(_all_left(key, levels, balance), key=lambda candidate: candidate.nano_usd)
    return TightestObject(
        level=left.level,
        id=left.id,
        kind=left.kind,
        limit=usd(left.limit_nano_usd),
        remaining=usd(left.nano_usd),
        resets_at=moment_or_none(left.resets_s),
    )


def _all_left(
    key: KeySummary, levels: Sequence[Team | Member], balance: Balance
) -> Iterator[_Left]:
    """Yield the remaining amount of each limit, in the order of the checks."""
    own = LevelSpending(remaining_nano_usd=key.remaining_nano_usd, resets_s=key.resets_s)
    yield from _each("key", key.id, key.limits_nano_usd, own)
    for level in levels:
        yield from _each(
            "team" if isinstance(level, Team) else "member",
            level.id,
            level.limits_nano_usd,
            level.spending,
        )
    yield _Left(
        level="workspace",
        id=key.workspace_id,
        kind="credit",
        limit_nano_usd=balance.granted_nano_usd,
        nano_usd=balance.available_nano_usd,
    )


def _each(
    level: Level, id_: str, limits: Mapping[Period, int], spending: LevelSpending
) -> Iterator[_Left]:
    for period, limit in limits.items():
        # A limit that was just set may not have any counts yet.
        if period not in spending.remaining_nano_usd:
            continue
        yield _Left(
            level=level,
            id=id_,
            kind=period,
            limit_nano_usd=limit,
            nano_usd=spending.remaining_nano_usd[period],
            resets_s=spending.resets_s.get(period),
        )
