"""Compare access.yaml with the state of a workspace, without any I/O."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from tollgate.cli.access.access_file import (
    ACCESS_KINDS,
    KEYS,
    MEMBERS,
    TEAMS,
    WORKSPACE,
    AccessEntry,
    AccessFile,
    Kind,
    entries_of,
)
from tollgate.cli.access.live import LiveAccess, LiveObject
from tollgate.stores.ports.people import SESSION_KEY_PREFIX
from tollgate.stores.rules.periods import PERIODS

# The form of a setting in which the file and the API are compared.
SettingValue: TypeAlias = (
    "bool | int | str | Decimal | tuple[str, ...] | Mapping[str, Decimal | str] | None"
)
# Member roles, from the most rights to the least; the rights of other roles are not comparable.
_ROLES: Final = ("owner", "admin")


class SettingChange(Struct, frozen=True, kw_only=True):
    """A setting whose live value differs from the file."""

    name: str
    live: SettingValue
    """The live value; None if the setting has no value or the object is new."""
    stated: SettingValue

    @property
    def is_loss(self) -> bool:
        """True if people or programs lose rights or limits through the change."""
        match self.stated, self.live:
            case bool(), _:
                return self.stated is not (self.name == "enabled")
            case ((int() | Decimal()), (int() | Decimal() | None)):
                return self.live is None or self.stated < self.live
            case tuple(), (tuple() | None):
                return self.live is None or not set(self.live) <= set(self.stated)
            case Mapping(), Mapping():
                return any(_is_lower(amount, self.live.get(p)) for p, amount in self.stated.items())
            case str(), str() if self.name == "role":
                return _rank(self.stated) >= _rank(self.live)
            case _:
                return False


class ObjectChange(Struct, frozen=True, kw_only=True):
    """An object that the file creates or changes."""

    kind: Kind
    name: str
    id: str | None
    """Id of the live object; None for a new object."""
    settings: tuple[SettingChange, ...]
    body: Mapping[str, object]
    """Body of the request that makes the change."""
    affected: tuple[str, ...] = ()
    """Names of the keys that lose rights or limits because their team or member does."""
    unlisted: bool = False
    """True for an object that is disabled because the file does not list it."""

    @property
    def is_loss(self) -> bool:
        """True if people or programs lose rights or limits."""
        return self.id is not None and any(setting.is_loss for setting in self.settings)

    @property
    def stops(self) -> bool:
        """True if the object can no longer be used afterwards."""
        return self.id is not None and self.kind.stops_by in [
            (setting.name, setting.stated) for setting in self.settings
        ]


class Drift(Struct, frozen=True, kw_only=True):
    """A remaining difference: an unlisted object, or a setting left to the console until a day."""

    kind: Kind
    name: str
    id: str
    setting: SettingChange | None = None
    until: date | None = None


class LimitSum(Struct, frozen=True, kw_only=True):
    """The sum of the limits in dollars of all objects of a kind that are in use."""

    usd: Decimal
    unlimited: int
    """Number of objects without a limit."""


class LimitChange(Struct, frozen=True, kw_only=True):
    """The limits of a kind for a period, or the budget, before and after a plan."""

    subject: str
    period: str
    before: LimitSum
    after: LimitSum


class AccessPlan(Struct, frozen=True, kw_only=True):
    """The changes that a file makes, and the differences that it leaves."""

    workspace_id: str
    changes: tuple[ObjectChange, ...]
    drift: tuple[Drift, ...]
    limits: tuple[LimitChange, ...]
    """The total limits that the plan changes; unchanged totals are left out."""


def compare_access(file: AccessFile, live: LiveAccess, today: date) -> AccessPlan:
    """Return the plan of a file."""
    changes: list[ObjectChange] = []
    drift: list[Drift] = []
    for kind in ACCESS_KINDS:
        entries = entries_of(file, kind)
        if entries is None:
            continue
        for name, entry in entries.items():
            change, stays = _compare_object(kind, name, entry, live, today=today)
            changes += [] if change is None else [change]
            drift += stays
        for name, found in live.of(kind).items():
            if name not in entries and not _is_personal(kind, found):
                change = _stop_unlisted(file, kind, name, found, live=live)
                if change is not None:
                    changes.append(change)
                elif not _is_stopped(kind, found):
                    drift.append(Drift(kind=kind, name=name, id=found["id"]))
    # An owner is added before another is removed, because the gateway refuses to remove the last.
    changes.sort(
        key=lambda change: (ACCESS_KINDS.index(change.kind), change.body.get("role") != "owner")
    )
    return AccessPlan(
        workspace_id=live.workspace_id,
        changes=tuple(changes),
        drift=tuple(drift),
        limits=tuple(_limit_changes(live, changes)),
    )


def _compare_object(
    kind: Kind, name: str, entry: AccessEntry, live: LiveAccess, *, today: date
) -> tuple[ObjectChange | None, list[Drift]]:
    found = live.of(kind).get(name)
    values = entry.model_dump(include=set(entry.stated))
    if found is None:
        return _create(kind, name, entry, values), []
    changed, drift = [], []
    for setting in sorted(values):
        stated, present = _plain(setting, values[setting]), _plain(setting, found.get(setting))
        if stated == present:
            continue
        difference = SettingChange(name=setting, live=present, stated=stated)
        until = entry.console.get(setting)
        if until is not None and today <= until:
            drift.append(
                Drift(kind=kind, name=name, id=found["id"], setting=difference, until=until)
            )
        else:
            changed.append(difference)
    if not changed:
        return None, drift
    names = {difference.name for difference in changed}
    change = ObjectChange(
        kind=kind,
        name=name,
        id=found["id"],
        settings=tuple(changed),
        body=entry.model_dump(mode="json", include=names),
    )
    if change.is_loss:
        change = _with_affected(change, live)
    return change, drift


def _create(
    kind: Kind, name: str, entry: AccessEntry, values: Mapping[str, object]
) -> ObjectChange | None:
    if kind.stops_by is not None and kind.stops_by in values.items():
        # An entry for a stopped object that does not exist needs no change.
        return None
    settings = tuple(
        SettingChange(name=setting, live=None, stated=_plain(setting, values[setting]))
        for setting in sorted(values)
    )
    sent = set(entry.stated) - ({"disabled"} if kind is KEYS else set())
    body = {kind.identity: name, **entry.model_dump(mode="json", include=sent, exclude_none=True)}
    return ObjectChange(kind=kind, name=name, id=None, settings=settings, body=body)


def _stop_unlisted(
    file: AccessFile, kind: Kind, name: str, found: LiveObject, *, live: LiveAccess
) -> ObjectChange | None:
    """Return the change that disables a live object, if the file requires one."""
    if kind not in (MEMBERS, KEYS) or getattr(file.unlisted, kind.section) == "keep":
        return None
    own = live.own_key_id if kind is KEYS else live.own_member_id
    if kind.stops_by is None or found["id"] == own or _is_stopped(kind, found):
        return None
    setting, value = kind.stops_by
    change = ObjectChange(
        kind=kind,
        name=name,
        id=found["id"],
        settings=(SettingChange(name=setting, live=not value, stated=value),),
        body={setting: value},
        unlisted=True,
    )
    return _with_affected(change, live)


def _with_affected(change: ObjectChange, live: LiveAccess) -> ObjectChange:
    """Return a change with the names of the keys that it affects through their team or member."""
    keys = (
        name
        for name, key in live.of(KEYS).items()
        if _belongs(key, change, live) and not _is_stopped(KEYS, key)
    )
    return replace(change, affected=tuple(keys))


def _belongs(key: LiveObject, change: ObjectChange, live: LiveAccess) -> bool:
    if key["name"].startswith(SESSION_KEY_PREFIX):
        return False
    if change.kind is MEMBERS:
        return bool(key["member_id"] == change.id)
    member = live.of(MEMBERS).get(key["member_id"] or "", {})
    return change.kind is TEAMS and change.id == (key["team_id"] or member.get("team_id"))


def _is_personal(kind: Kind, found: LiveObject) -> bool:
    """Return True for a key of a member, who may create keys without the file."""
    return kind is KEYS and found["member_id"] is not None


def _is_stopped(kind: Kind, found: LiveObject) -> bool:
    return kind.stops_by is not None and found[kind.stops_by[0]] is kind.stops_by[1]


def _limit_changes(live: LiveAccess, changes: Sequence[ObjectChange]) -> Iterator[LimitChange]:
    for kind in (TEAMS, MEMBERS, KEYS):
        before = dict(live.of(kind))
        changed = {change.name: change for change in changes if change.kind is kind}
        after = {
            name: {**before.get(name, {}), **_new_settings(changed.get(name))}
            for name in [*before, *(changed.keys() - before.keys())]
        }
        for period in PERIODS:
            old, new = _sum_limits(before.values(), period), _sum_limits(after.values(), period)
            if old.usd != new.usd:
                yield LimitChange(subject=kind.section, period=period, before=old, after=new)
    for change in changes:
        for setting in change.settings:
            if change.kind is WORKSPACE and setting.name == "budget":
                yield LimitChange(
                    subject="budget",
                    period="month",
                    before=_budget(setting.live),
                    after=_budget(setting.stated),
                )


def _new_settings(change: ObjectChange | None) -> Mapping[str, SettingValue]:
    return {} if change is None else {it.name: it.stated for it in change.settings}


def _sum_limits(objects: Iterable[LiveObject], period: str) -> LimitSum:
    # A new object has no limits unless its entry sets some.
    limits = [found.get("limits", {}) for found in objects if not found.get("disabled")]
    amounts = [Decimal(each[period]) for each in limits if period in each]
    return LimitSum(usd=sum(amounts, Decimal(0)), unlimited=len(limits) - len(amounts))


def _budget(value: SettingValue) -> LimitSum:
    if isinstance(value, Decimal):
        return LimitSum(usd=value, unlimited=0)
    return LimitSum(usd=Decimal(0), unlimited=1)


def _plain(name: str, value: object) -> SettingValue:
    """Return a setting of the file or the API in the form in which both are compared."""
    match value:
        case None if name in ("limits", "labels"):
            return {}
        case None | bool():
            return value
        case Mapping():
            kind = Decimal if name == "limits" else str
            return {str(key): kind(each) for key, each in value.items() if each is not None}
        case list() | tuple():
            return tuple(map(str, value))
        case datetime():
            return int(value.timestamp())
        case str() if name == "expires_at":
            return int(datetime.fromisoformat(value).timestamp())
        case int() | Decimal():
            return Decimal(value) if name == "budget" else value
        case _:
            return str(value)


def _is_lower(amount: object, live: object) -> bool:
    if not isinstance(amount, Decimal):
        return False
    return not isinstance(live, Decimal) or amount < live


def _rank(role: str) -> int:
    return _ROLES.index(role) if role in _ROLES else len(_ROLES)
