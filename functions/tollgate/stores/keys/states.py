"""States of keys, members and teams in DynamoDB; a hold checks and updates a state in one write."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from tollgate.aws.attributes import Item, number
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller
from tollgate.aws.failures import ConditionFailed, StoreUnavailable
from tollgate.core.clock import Clock
from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import GatewayError
from tollgate.core.ids import created_s
from tollgate.core.limits import LimitOwner, SessionLimit, TierLimits
from tollgate.core.quotas import QuotaHold
from tollgate.stores.aws.expressions import KEY_USED
from tollgate.stores.aws.holds import HoldUnknown, held_by, settle_whatever_is_held
from tollgate.stores.aws.items import KeyStateItem
from tollgate.stores.aws.tables import try_update
from tollgate.stores.keys.hold_expressions import key_hold, key_settle, key_top_up
from tollgate.stores.keys.key_holds import (
    KeyHold,
    KeyHoldRequest,
    next_hold_step,
    update_state,
)
from tollgate.stores.keys.quota_writes import (
    QuotaPart,
    hold_part,
    read_taken,
    settle_part,
    stale_names,
)
from tollgate.stores.keys.state_items import count_slices, get_slices, read_key_state
from tollgate.stores.keys.tiers import OwnLimits, TierPart, budget_part, tier_part
from tollgate.stores.rules.account import (
    KeyHoldAttempt,
    KeyState,
    key_refused,
    microseconds,
    top_up_refusal,
)
from tollgate.stores.rules.limit_warnings import find_warning
from tollgate.stores.rules.periods import bucket_names, minute_bucket, stale_buckets
from tollgate.stores.rules.quotas import (
    QuotaUse,
    quota_step,
    refuse_top_up,
    top_up_amounts,
    top_up_take,
)

if TYPE_CHECKING:
    from tollgate.stores.keys.session_states import SessionStates

# Imported with the first hold on a level that has slices.
_HOLD_ON_SLICES: Final = DottedName[
    Callable[["KeyStates", LimitOwner, str, KeyHoldRequest], Awaitable[KeyHold | GatewayError]]
]("tollgate.stores.keys.slices:hold_on_slices")

# Imported with the first hold on a session.
_SESSION_STATES: Final = DottedName[type["SessionStates"]](
    "tollgate.stores.keys.session_states:SessionStates"
)

_WRITES_MAX: Final = 8
_KEYS_REMEMBERED_MAX: Final = 4096
# Attribute for the time of the last use, by whether a rotation has replaced the used secret.
_USED: Final = {False: KeyStateItem.LAST_USED, True: KeyStateItem.OLD_LAST_USED}
_MINUTE_ALIAS: Final = "#n"
_BUCKET_ALIASES: Final = ("#d", "#w", "#m", "#t")


class _LastSeen(Struct, frozen=True):
    """Limits and stale buckets from the last reply, as a guess for the next write."""

    stale: tuple[str, ...] = ()
    """Names of stale buckets, which the next hold's write removes."""
    own: OwnLimits = field(default_factory=OwnLimits)
    """The key's or level's own limits."""
    state: KeyState | None = None


_UNSEEN: Final = _LastSeen()
_UNKNOWN_USE: Final = QuotaUse()


class KeyStates:
    """The states of all keys, members, teams and sessions."""

    def __init__(self, client: AwsCaller, table: str, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock
        self._last_seen: OrderedDict[LimitOwner, _LastSeen] = OrderedDict()

    @cached_property
    def _sessions(self) -> "SessionStates":
        return _SESSION_STATES()(self._client, self._table, self._clock)

    async def hold(
        self, owner: LimitOwner, hold_id: str, request: KeyHoldRequest
    ) -> KeyHold | GatewayError:
        """Set aside the amount, or the remaining amount if that is less, and count the request.

        Raise HoldUnknown if a write may have been applied, and StoreUnavailable if no write was.
        """
        if refusal := request.over_budget(owner, hold_id):
            return refusal
        last_seen = self._last_seen.get(owner, _UNSEEN)
        own = last_seen.own
        now_us = self.now_us()
        form = own.rate.form(now_us)
        if last_seen is _UNSEEN and owner.level == "key":
            # Every key has a rate limit; most levels have none.
            form = "idle"
        counted = quota_step({}, request.quotas, owner, hold_id)
        if isinstance(counted, GatewayError):
            return counted
        amount = request.amount_max_nano_usd
        take = KeyHoldAttempt(amount_nano_usd=amount, form=form, tokens=request.tokens)
        for _ in range(_WRITES_MAX):
            payload = self._hold_payload(
                owner,
                hold_id,
                take,
                now_us=now_us,
                stale=last_seen.stale,
                used=_USED[request.old_secret],
                tier=tier_part(request.tier, own, take),
                quotas=hold_part(counted, hold_id),
            )
            try:
                reply = await self._client.call("UpdateItem", payload, attempts_max=1)
            except ConditionFailed as failed:
                now_us = self.now_us()
                state = None if failed.item is None else read_key_state(failed.item, now_us)
                if failed.item is not None and state is not None:
                    self._remember(owner, failed.item, state, now_us)
                step = next_hold_step(state, owner, hold_id, request, now_us=now_us)
                if isinstance(step, GatewayError):
                    return await self._hold_on_more(owner, hold_id, request, failed.item) or step
                take, counted = step
                own = own if state is None else OwnLimits.of(state)
            except StoreUnavailable as unavailable:
                if unavailable.maybe_applied:
                    amount = take.amount_nano_usd
                    raise HoldUnknown(amount, unavailable, owner.slice) from unavailable
                raise
            else:
                item: Item = reply["Attributes"]
                stored = read_key_state(item)
                self._remember(owner, item, stored, now_us)
                second, now_s = created_s(hold_id), now_us / 1_000_000
                held = stored.within(request.tier, second)
                return KeyHold(
                    owner=owner,
                    amount_nano_usd=take.amount_nano_usd,
                    tokens=take.tokens,
                    rate_limit=held.rate.to_limit(now_us),
                    token_limit=held.token_limit(second, now_s),
                    warning=find_warning(held, request.warns_from_percent, second, request.quotas),
                    quotas=counted,
                )
        raise StoreUnavailable(
            f"the state of {owner.level} {owner.id} keeps changing", maybe_applied=False
        )

    async def _hold_on_more(
        self, owner: LimitOwner, hold_id: str, request: KeyHoldRequest, refuses: Item | None
    ) -> KeyHold | GatewayError | None:
        """Place the hold on any of the slices if the state has more slices than the request states;
        otherwise return None.

        The request may state too few slices, because authentication caches the level's item for
        some seconds.
        """
        slices = 1 if refuses is None else count_slices(refuses)
        if slices <= request.slices:
            return None
        whole = replace(owner, slice=0)
        return await self.hold_on_slices(whole, hold_id, replace(request, slices=slices))

    async def hold_on_slices(
        self, owner: LimitOwner, hold_id: str, request: KeyHoldRequest
    ) -> KeyHold | GatewayError:
        """Place a hold on one slice of a state, as `hold` does on an undivided state."""
        return await _HOLD_ON_SLICES()(self, owner, hold_id, request)

    async def hold_in_session(
        self, owner: LimitOwner, hold_id: str, limit: SessionLimit, amount_nano_usd: int
    ) -> KeyHold | GatewayError:
        """Place a hold on the state of a session."""
        return await self._sessions.hold(owner, hold_id, limit, amount_nano_usd)

    async def read_slices(self, owner: LimitOwner, slices: int) -> dict[LimitOwner, Item]:
        """Return the items of a state's slices in order; remember the limits for the next holds."""
        items = await get_slices(self._client, self._table, owner, slices)
        for slice_owner, item in items.items():
            self._remember(slice_owner, item, read_key_state(item), self.now_us())
        return items

    def last_states(self, owner: LimitOwner, slices: int) -> list[KeyState]:
        """Return the last seen state of each slice of an owner, without those not seen yet."""
        places = (replace(owner, slice=index) for index in range(slices))
        seen = [self._last_seen.get(place, _UNSEEN).state for place in places]
        return [state for state in seen if state is not None]

    def now_us(self) -> int:
        """Return the current time in microseconds, the unit of rates."""
        return microseconds(self._clock.now_s())

    async def top_up(
        self,
        owner: LimitOwner,
        hold_id: str,
        *,
        held_nano_usd: int,
        more_nano_usd: int,
        tier: TierLimits | None = None,
        quotas: Sequence[QuotaHold] = (),
    ) -> GatewayError | None:
        """Add to a hold's amount; return a refusal if the key or a limit no longer allows it.

        A retry is safe: the amount only grows, so a retry finds out that the first call was
        applied. Raise StoreUnavailable if the hold's amount is not `held_nano_usd`.
        """
        take = top_up_take(quotas, more_nano_usd)
        counted = hold_part(take, hold_id, added=top_up_amounts(quotas, more_nano_usd))
        names = {**_money_names(hold_id), "#on": KeyStateItem.ENABLED, **counted.names}
        own = self._last_seen.get(owner, _UNSEEN).own
        for _ in range(_WRITES_MAX):
            spending = budget_part(tier, own, more_nano_usd)
            now_us = self.now_us()
            values = {
                ":a": number(held_nano_usd),
                ":b": number(held_nano_usd + more_nano_usd),
                ":x": number(more_nano_usd),
                ":one": number(1),
                ":second": number(now_us // 1_000_000),
                **spending.values,
                **counted.values,
            }
            write = key_top_up(spending.budget, counted.counters)
            try:
                payload = update_state(write, self._table, owner, names=names, values=values)
                await self._client.call("UpdateItem", payload)
            except ConditionFailed as failed:
                held = held_by(failed.item, hold_id)
                if held == held_nano_usd + more_nano_usd:
                    return None
                if failed.item is None:
                    return key_refused()
                state = read_key_state(failed.item)
                narrowed = state.within(tier, created_s(hold_id))
                if refusal := top_up_refusal(
                    narrowed, owner, hold_id, more_nano_usd, now_us=now_us
                ):
                    return refusal
                if refusal := refuse_top_up(state.counters, take, owner, hold_id):
                    return refusal
                if held != held_nano_usd:
                    break
                own = OwnLimits.of(state)
            else:
                return None
        raise StoreUnavailable(f"hold {hold_id} keeps changing", maybe_applied=False)

    async def note_use(self, owner: LimitOwner, *, old_secret: bool) -> None:
        """Record that a key is used now; ignore a deleted key."""
        names = {"#used": _USED[old_secret]}
        values = {":second": number(int(self._clock.now_s()))}
        await try_update(
            self._client, update_state(KEY_USED, self._table, owner, names=names, values=values)
        )

    async def settle(
        self,
        owner: LimitOwner,
        hold_id: str,
        *,
        held_nano_usd: int,
        cost_nano_usd: int,
        unused_tokens: int = 0,
        unused_requests: int = 0,
        quotas: Sequence[QuotaHold] = (),
        use: QuotaUse = _UNKNOWN_USE,
        attempts_max: int = ATTEMPTS_MAX,
    ) -> None:
        """Replace a hold by the cost, in the periods that the hold was taken from.

        `unused_tokens` are returned to the hold's minute; the number is negative if more tokens
        were used than held. `unused_requests` are returned to a session. The counters of quotas
        are reduced by what `use` did not need. A settled hold is ignored.
        """
        if owner.level == "session":
            await self._sessions.settle(
                owner,
                hold_id,
                held_nano_usd=held_nano_usd,
                cost_nano_usd=cost_nano_usd,
                unused_requests=unused_requests,
                attempts_max=attempts_max,
            )
            return

        taken = {each.name: each.taken for each in quotas}

        async def settle(held: int) -> None:
            nonlocal taken
            counted = settle_part(taken, use, hold_id)
            values = {
                ":a": number(held),
                ":c": number(cost_nano_usd),
                ":d": number(held - cost_nano_usd),
                ":t": number(unused_tokens),
                **counted.values,
            }
            payload = update_state(
                key_settle(counted.counters),
                self._table,
                owner,
                names={**_names(hold_id), **counted.names},
                values=values,
            )
            try:
                await self._client.call("UpdateItem", payload, attempts_max=attempts_max)
            except ConditionFailed as failed:
                taken = read_taken(failed.item, hold_id)
                raise

        await settle_whatever_is_held(settle, hold_id, held_nano_usd)

    def _hold_payload(
        self,
        owner: LimitOwner,
        hold_id: str,
        take: KeyHoldAttempt,
        *,
        now_us: int,
        stale: Sequence[str],
        used: str,
        tier: TierPart,
        quotas: QuotaPart,
    ) -> dict[str, object]:
        names = _names(hold_id)
        names["#on"] = KeyStateItem.ENABLED
        names["#used"] = used
        names |= quotas.names
        # The bucket of a hold whose id is minutes old may be stale: do not remove a bucket that
        # this write changes.
        removed = [name for name in stale if name not in names.values()]
        names.update({f"#s{index}": name for index, name in enumerate(removed)})
        values = {
            ":a": number(take.amount_nano_usd),
            ":t": number(take.tokens),
            ":second": number(now_us // 1_000_000),
            ":one": number(1),
            **tier.values,
            **quotas.values,
        }
        if take.form != "unlimited":
            values[":now"] = number(now_us)
        if take.waiting:
            names.update({f"#p{index}": id_ for index, id_ in enumerate(take.waiting)})
            values[":cc"] = number(take.concurrency)
            values[":places"] = number(take.concurrency + len(take.waiting))
        write = key_hold(
            take.form,
            len(removed),
            rate=tier.rate,
            budget=tier.budget,
            waiting=len(take.waiting),
            counters=quotas.counters,
        )
        payload = update_state(write, self._table, owner, names=names, values=values)
        payload["ReturnValues"] = "ALL_NEW"
        return payload

    def _remember(self, owner: LimitOwner, item: Item, state: KeyState, now_us: int) -> None:
        second = now_us // 1_000_000
        stale = (*stale_buckets(set(item), second), *stale_names(item, second))
        self._last_seen[owner] = _LastSeen(stale, OwnLimits.of(state), state)
        self._last_seen.move_to_end(owner)
        if len(self._last_seen) > _KEYS_REMEMBERED_MAX:
            self._last_seen.popitem(last=False)


def _names(hold_id: str) -> dict[str, str]:
    """Return the aliases of a hold and its buckets, which depend only on the hold's id."""
    return {**_money_names(hold_id), _MINUTE_ALIAS: minute_bucket(created_s(hold_id))}


def _money_names(hold_id: str) -> dict[str, str]:
    buckets = bucket_names(created_s(hold_id))
    return {"#h": hold_id, **dict(zip(_BUCKET_ALIASES, buckets, strict=True))}
