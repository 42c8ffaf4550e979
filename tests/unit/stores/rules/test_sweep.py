"""Which holds a sweeper expires."""

from tollgate.core.ids import encode_id
from tollgate.core.limits import LimitOwner
from tollgate.stores.rules.sweep import (
    HOLD_LIFETIME_S,
    StateHolds,
    WalletHolds,
    expired_holds,
    lost_record,
)

NOW_S = 1795264201
OLD_S = NOW_S - HOLD_LIFETIME_S - 1


def hold_id(second: int, tail: int = 0) -> str:
    return encode_id(second.to_bytes(4, "big") + tail.to_bytes(7, "big"))


def wallet(**holds: int) -> WalletHolds:
    return WalletHolds(workspace_id="acme", shard=2, holds=holds)


def key(**holds: int) -> StateHolds:
    owner = LimitOwner(level="key", id="key", workspace_id="acme")
    return StateHolds(owner=owner, holds=holds)


def team(**holds: int) -> StateHolds:
    owner = LimitOwner(level="team", id="search", workspace_id="acme")
    return StateHolds(owner=owner, holds=holds)


def test_the_deadline_is_the_functions_timeout_and_two_minutes() -> None:
    assert HOLD_LIFETIME_S == 885 + 120


def test_a_hold_expires_only_after_its_deadline() -> None:
    due, not_yet = hold_id(OLD_S), hold_id(OLD_S + 1)

    found = expired_holds([wallet(**{due: 1, not_yet: 1})], NOW_S)

    assert [hold.id for hold in found] == [due]


def test_both_sides_of_a_hold_are_found_together_oldest_first() -> None:
    first, second, third = hold_id(OLD_S - 9), hold_id(OLD_S, 1), hold_id(OLD_S, 2)
    on_wallet, on_key = wallet(**{second: 5, first: 7}), key(**{third: 3, first: 4})

    found = expired_holds([on_key, on_wallet], NOW_S)

    assert [
        (hold.id, tuple(hold.wallets), tuple(hold.states), hold.held_nano_usd) for hold in found
    ] == [
        (first, (on_wallet,), (on_key,), 7),
        (second, (on_wallet,), (), 5),
        (third, (), (on_key,), 3),
    ]


def test_a_side_of_a_level_alone_is_found_and_names_no_key() -> None:
    [found] = expired_holds([on_team := team(**{hold_id(OLD_S): 3})], NOW_S)

    assert (found.states, found.workspace_id, found.key_id) == ([on_team], "acme", "")


def test_the_key_of_a_hold_is_named_beside_its_levels() -> None:
    both = [team(**{hold_id(OLD_S): 3}), key(**{hold_id(OLD_S): 3})]

    [found] = expired_holds(both, NOW_S)

    assert (list(found.states), found.key_id) == (both, "key")


def test_a_hold_on_two_shards_is_found_on_both() -> None:
    id_ = hold_id(OLD_S)
    sides = [WalletHolds(workspace_id="acme", shard=shard, holds={id_: 5}) for shard in (0, 3)]

    (found,) = expired_holds(sides, NOW_S)

    assert (tuple(found.wallets), found.states, found.workspace_id) == (tuple(sides), (), "acme")


def test_a_lost_generation_costs_nothing_and_names_what_is_known() -> None:
    id_ = hold_id(OLD_S)
    both = expired_holds([wallet(**{id_: 5}), key(**{id_: 4})], NOW_S)[0]
    wallet_only = expired_holds([wallet(**{id_: 5})], NOW_S)[0]

    record = lost_record(both)

    assert (record.id, record.created_s, record.workspace_id, record.key_id) == (
        id_,
        OLD_S,
        "acme",
        "key",
    )
    assert (record.outcome, record.cost_nano_usd, record.held_nano_usd) == ("lost", 0, 5)
    assert lost_record(wallet_only).key_id == ""
