"""Keys' states in DynamoDB: limits, rate and concurrency, all in the one write of a hold."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tollgate.core.clock import Clock
from tollgate.core.errors import GatewayError
from tollgate.core.ids import created_s
from tollgate.ledger.account import (
    HOLDS_MAX,
    NEVER_S,
    UNLIMITED_NANO_USD,
    KeyState,
    KeyTake,
    RateState,
    key_step,
    microseconds,
    rate_form,
)
from tollgate.ledger.periods import PERIODS, bucket_names, stale_buckets
from tollgate.stores.attributes import AttributeValue, Item, number, read_number, text
from tollgate.stores.aws_json import ATTEMPTS_MAX, AwsCaller
from tollgate.stores.base import NewKey, RateLimit
from tollgate.stores.expressions import KEY_SETTLE, ConditionalUpdate, key_hold
from tollgate.stores.failures import ConditionFailed, StoreUnavailable
from tollgate.stores.holds import HoldUnknown, hold_count, settle_whatever_is_held
from tollgate.stores.tables import key_state_key

_WRITES_MAX: Final = 8
_KEYS_REMEMBERED_MAX: Final = 4096
_LIMIT_NAMES: Final = ("ld", "lw", "lm", "lt")
_BUCKET_ALIASES: Final = ("#d", "#w", "#m", "#t")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHold:
    """Money that a key has set aside, and what is left of its rate."""

    amount_nano_usd: int
    rate_limit: RateLimit


@dataclass(frozen=True, slots=True)
class _LastSeen:
    """What the last reply said of a key: a guess for the next write, never a decision."""

    full_us: int
    stale: tuple[str, ...]


class KeyStates:
    """The states of all keys."""

    def __init__(self, client: AwsCaller, table: str, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock
        self._last_seen: OrderedDict[str, _LastSeen] = OrderedDict()

    async def hold(self, key_id: str, hold_id: str, amount_nano_usd: int) -> KeyHold | GatewayError:
        """Set the amount aside, or what is left of it, and count the request.

        Raises HoldUnknown where a write may have landed, StoreUnavailable where none has.
        """
        last_seen = self._last_seen.get(key_id, _LastSeen(0, ()))
        now_us = microseconds(self._clock.now_s())
        take = KeyTake(amount_nano_usd=amount_nano_usd, form=rate_form(last_seen.full_us, now_us))
        for _ in range(_WRITES_MAX):
            payload = self._hold_payload(
                key_id, hold_id, take, now_us=now_us, stale=last_seen.stale
            )
            try:
                reply = await self._client.call("UpdateItem", payload, attempts_max=1)
            except ConditionFailed as failed:
                state = None if failed.item is None else read_key_state(failed.item)
                now_us = microseconds(self._clock.now_s())
                step = key_step(state, hold_id, amount_nano_usd, now_us)
                if isinstance(step, GatewayError):
                    return step
                take = step
            except StoreUnavailable as unavailable:
                if unavailable.maybe_applied:
                    raise HoldUnknown(take.amount_nano_usd, unavailable) from unavailable
                raise
            else:
                item: Item = reply["Attributes"]
                rate = read_key_state(item).rate
                self._remember(key_id, item, rate.full_us, now_us)
                return KeyHold(amount_nano_usd=take.amount_nano_usd, rate_limit=rate.shown(now_us))
        raise StoreUnavailable(f"the state of key {key_id} keeps changing", maybe_applied=False)

    async def settle(
        self,
        key_id: str,
        hold_id: str,
        *,
        held_nano_usd: int,
        cost_nano_usd: int,
        attempts_max: int = ATTEMPTS_MAX,
    ) -> None:
        """Replace a hold by what was spent, in the periods it was taken from.

        Nothing happens where the hold is gone already.
        """

        async def settle(held: int) -> None:
            values = {
                ":a": number(held),
                ":c": number(cost_nano_usd),
                ":d": number(held - cost_nano_usd),
            }
            payload = self._update(KEY_SETTLE, key_id, _names(hold_id), values)
            await self._client.call("UpdateItem", payload, attempts_max=attempts_max)

        await settle_whatever_is_held(settle, hold_id, held_nano_usd)

    def _hold_payload(
        self,
        key_id: str,
        hold_id: str,
        take: KeyTake,
        *,
        now_us: int,
        stale: Sequence[str],
    ) -> dict[str, object]:
        names = _names(hold_id)
        names["#on"] = "on"
        names.update({f"#s{index}": name for index, name in enumerate(stale)})
        values = {
            ":a": number(take.amount_nano_usd),
            ":now": number(now_us),
            ":second": number(now_us // 1_000_000),
            ":one": number(1),
        }
        payload = self._update(key_hold(take.form, len(stale)), key_id, names, values)
        payload["ReturnValues"] = "ALL_NEW"
        return payload

    def _update(
        self,
        write: ConditionalUpdate,
        key_id: str,
        names: Mapping[str, str],
        values: Mapping[str, AttributeValue],
    ) -> dict[str, object]:
        return {
            "TableName": self._table,
            "Key": key_state_key(key_id),
            "UpdateExpression": write.update,
            "ConditionExpression": write.condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def _remember(self, key_id: str, item: Item, full_us: int, now_us: int) -> None:
        stale = stale_buckets(set(item), now_us // 1_000_000)
        self._last_seen[key_id] = _LastSeen(full_us, stale)
        self._last_seen.move_to_end(key_id)
        if len(self._last_seen) > _KEYS_REMEMBERED_MAX:
            self._last_seen.popitem(last=False)


def _names(hold_id: str) -> dict[str, str]:
    """The hold and its buckets: those of the second in its id, so that a sweeper finds them too."""
    buckets = bucket_names(created_s(hold_id))
    return {"#h": hold_id, **dict(zip(_BUCKET_ALIASES, buckets, strict=True))}


def new_key_state(key_id: str, new: NewKey) -> Item:
    """The state a key starts with."""
    rate = RateState.fresh(new.requests_per_minute, new.burst)
    limits = (new.limits_nano_usd.get(period, UNLIMITED_NANO_USD) for period in PERIODS)
    return {
        **key_state_key(key_id),
        "ws": text(new.workspace_id),
        "on": number(1),
        "ex": number(NEVER_S if new.expires_s is None else new.expires_s),
        "cc": number(HOLDS_MAX if new.concurrency is None else new.concurrency),
        **{name: number(limit) for name, limit in zip(_LIMIT_NAMES, limits, strict=True)},
        "us": number(0),
        "tat": number(rate.full_us),
        "ra": number(rate.ready_us),
        "gi": number(rate.interval_us),
        "gs": number(rate.slack_us),
        "h": {"M": {}},
    }


def read_key_state(item: Item) -> KeyState:
    """A state as its item says."""
    return KeyState(
        enabled=read_number(item, "on") == 1,
        expires_s=read_number(item, "ex"),
        concurrency=read_number(item, "cc"),
        holds=hold_count(item),
        limits_nano_usd={
            period: read_number(item, name)
            for period, name in zip(PERIODS, _LIMIT_NAMES, strict=True)
        },
        buckets={name: int(value["N"]) for name, value in item.items() if name.startswith("b_")},
        rate=RateState(
            full_us=read_number(item, "tat"),
            ready_us=read_number(item, "ra"),
            interval_us=read_number(item, "gi"),
            slack_us=read_number(item, "gs"),
        ),
    )
