"""States of sessions in DynamoDB, imported with the first hold of a key that limits sessions.

The first request of a session creates the state, which expires some time after the last request.
"""

from collections import OrderedDict
from typing import Final

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller
from tollgate.aws.failures import ConditionFailed, StoreUnavailable
from tollgate.core.clock import Clock
from tollgate.core.errors import GatewayError
from tollgate.core.limits import LimitOwner, SessionLimit
from tollgate.stores.aws.decoding import read_number, reads_an_item
from tollgate.stores.aws.holds import HoldUnknown, held_by, hold_count, settle_whatever_is_held
from tollgate.stores.aws.items import SessionStateItem
from tollgate.stores.keys.key_holds import KeyHold, update_state
from tollgate.stores.keys.session_expressions import SESSION_FIRST, SESSION_NEXT, SESSION_SETTLE
from tollgate.stores.rules.account import HOLDS_MAX
from tollgate.stores.rules.session_limits import (
    SESSION_KEPT_S,
    SessionState,
    budget_of,
    refuse_in_session,
    requests_of,
)

_WRITES_MAX: Final = 4
_SESSIONS_REMEMBERED_MAX: Final = 4096


@reads_an_item
def read_session_state(item: Item) -> SessionState:
    """Decode the state of a session."""
    return SessionState(
        committed_nano_usd=read_number(item, SessionStateItem.COMMITTED),
        requests=read_number(item, SessionStateItem.REQUESTS),
        holds=hold_count(item),
    )


class SessionStates:
    """The states of the sessions of all keys."""

    def __init__(self, client: AwsCaller, table: str, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock
        # Sessions known to have an item, so that most requests need only one write.
        self._begun: OrderedDict[str, None] = OrderedDict()

    async def hold(
        self, owner: LimitOwner, hold_id: str, limit: SessionLimit, amount_nano_usd: int
    ) -> KeyHold | GatewayError:
        """Set aside the whole amount and count the request, or return the refusal.

        Raise HoldUnknown if a write may have been applied, and StoreUnavailable if no write was.
        """
        if refusal := refuse_in_session(SessionState(), owner, limit, amount_nano_usd):
            return refusal
        has_begun = owner.id in self._begun
        for _ in range(_WRITES_MAX):
            payload = self._hold_payload(owner, hold_id, limit, amount_nano_usd, begun=has_begun)
            try:
                await self._client.call("UpdateItem", payload, attempts_max=1)
            except ConditionFailed as failed:
                has_begun = failed.item is not None
                if failed.item is None:
                    continue
                state = read_session_state(failed.item)
                if refusal := refuse_in_session(state, owner, limit, amount_nano_usd):
                    return refusal
                if held_by(failed.item, hold_id) is not None:
                    break
            except StoreUnavailable as unavailable:
                if unavailable.maybe_applied:
                    raise HoldUnknown(amount_nano_usd, unavailable) from unavailable
                raise
            else:
                self._remember(owner)
                return KeyHold(owner=owner, amount_nano_usd=amount_nano_usd, tokens=0, requests=1)
        raise StoreUnavailable(
            f"the state of session {owner.id} keeps changing", maybe_applied=False
        )

    async def settle(
        self,
        owner: LimitOwner,
        hold_id: str,
        *,
        held_nano_usd: int,
        cost_nano_usd: int,
        unused_requests: int = 0,
        attempts_max: int = ATTEMPTS_MAX,
    ) -> None:
        """Replace a hold by the cost; `unused_requests` no longer count. Ignore a settled hold."""

        async def settle(held: int) -> None:
            values = {
                ":a": number(held),
                ":d": number(held - cost_nano_usd),
                ":n": number(unused_requests),
            }
            payload = update_state(
                SESSION_SETTLE, self._table, owner, names={"#h": hold_id}, values=values
            )
            await self._client.call("UpdateItem", payload, attempts_max=attempts_max)

        await settle_whatever_is_held(settle, hold_id, held_nano_usd)

    def _hold_payload(
        self,
        owner: LimitOwner,
        hold_id: str,
        limit: SessionLimit,
        amount_nano_usd: int,
        *,
        begun: bool,
    ) -> dict[str, object]:
        amount, names = number(amount_nano_usd), {"#ttl": SessionStateItem.DELETE_AT}
        values = {
            ":a": amount,
            ":one": number(1),
            ":ttl": number(int(self._clock.now_s()) + SESSION_KEPT_S),
        }
        if not begun:
            values |= {":h": {"M": {hold_id: amount}}, ":ws": string(owner.workspace_id)}
            return update_state(SESSION_FIRST, self._table, owner, names=names, values=values)
        values |= {
            ":room": number(budget_of(limit) - amount_nano_usd),
            ":most": number(requests_of(limit)),
            ":max": number(HOLDS_MAX),
        }
        return update_state(
            SESSION_NEXT, self._table, owner, names={**names, "#h": hold_id}, values=values
        )

    def _remember(self, owner: LimitOwner) -> None:
        self._begun[owner.id] = None
        self._begun.move_to_end(owner.id)
        if len(self._begun) > _SESSIONS_REMEMBERED_MAX:
            self._begun.popitem(last=False)
