"""What to do about money, as tables: each state an item can be in, and what follows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tollgate.core.errors import ErrorCode, GatewayError
from tollgate.core.ids import encode_id
from tollgate.core.limits import LimitOwner, ReachedLimit
from tollgate.stores.rules.account import (
    HOLDS_MAX,
    NEVER_S,
    UNLIMITED,
    UNLIMITED_BURST,
    UNLIMITED_RATE,
    KeyHoldAttempt,
    KeyState,
    RateState,
    WalletState,
    WalletStep,
    key_step,
    limit_reached,
    rate_form,
    shard_order,
    wallet_step,
)
from tollgate.stores.rules.periods import PERIODS, Period, period_ends_s

NOW_S = 1795264201
NOW_US = NOW_S * 1_000_000
OWNER = LimitOwner(level="key", id="key", workspace_id="acme")
HOLD_ID = encode_id(NOW_S.to_bytes(4, "big") + bytes(7))

KEY = KeyState(
    enabled=True,
    expires_s=NEVER_S,
    concurrency=10,
    holds=0,
    limits_nano_usd=dict.fromkeys(PERIODS, UNLIMITED),
    buckets={},
    rate=RateState.fresh(60, 2),
)


@pytest.mark.parametrize(
    ("state", "amount", "step"),
    [
        (None, 0, "empty"),
        (WalletState(available_nano_usd=10, locked=False, holds=0), 10, "hold"),
        (WalletState(available_nano_usd=9, locked=False, holds=0), 10, "hold_rest"),
        (WalletState(available_nano_usd=1, locked=False, holds=0), 10, "hold_rest"),
        (WalletState(available_nano_usd=0, locked=False, holds=0), 10, "empty"),
        (WalletState(available_nano_usd=0, locked=False, holds=0), 0, "hold"),
        (WalletState(available_nano_usd=-1, locked=False, holds=0), 0, "empty"),
        (WalletState(available_nano_usd=10, locked=True, holds=0), 1, "locked"),
        (WalletState(available_nano_usd=10, locked=False, holds=HOLDS_MAX), 1, "full"),
        (WalletState(available_nano_usd=10, locked=False, holds=HOLDS_MAX - 1), 1, "hold"),
    ],
)
def test_a_shard_says_what_to_try(state: WalletState | None, amount: int, step: WalletStep) -> None:
    assert wallet_step(state, amount) == step


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (None, ErrorCode.INVALID_API_KEY),
        (replace(KEY, enabled=False), ErrorCode.INVALID_API_KEY),
        (replace(KEY, expires_s=NOW_S), ErrorCode.INVALID_API_KEY),
        (replace(KEY, holds=10), ErrorCode.RATE_LIMIT_EXCEEDED),
        (replace(KEY, buckets={"b_total": 0}), ErrorCode.KEY_LIMIT_EXCEEDED),
        (replace(KEY, buckets={"b_202611": -5}), ErrorCode.KEY_LIMIT_EXCEEDED),
        (
            replace(KEY, rate=replace(KEY.rate, full_us=NOW_US + 1, ready_us=NOW_US + 1)),
            ErrorCode.RATE_LIMIT_EXCEEDED,
        ),
    ],
)
def test_a_key_that_may_not_is_told_why(state: KeyState | None, code: ErrorCode) -> None:
    step = key_step(state, OWNER, HOLD_ID, 5, now_us=NOW_US)

    assert isinstance(step, GatewayError)
    assert step.code is code


@pytest.mark.parametrize(
    ("state", "take"),
    [
        (KEY, KeyHoldAttempt(amount_nano_usd=5, form="idle")),
        (replace(KEY, expires_s=NOW_S + 1), KeyHoldAttempt(amount_nano_usd=5, form="idle")),
        (replace(KEY, holds=9), KeyHoldAttempt(amount_nano_usd=5, form="idle")),
        (replace(KEY, buckets={"b_20261121": 3}), KeyHoldAttempt(amount_nano_usd=3, form="idle")),
        (replace(KEY, buckets={"b_20261120": 0}), KeyHoldAttempt(amount_nano_usd=5, form="idle")),
        (
            replace(KEY, rate=replace(KEY.rate, full_us=NOW_US + 1, ready_us=NOW_US)),
            KeyHoldAttempt(amount_nano_usd=5, form="busy"),
        ),
    ],
)
def test_a_key_that_may_takes_what_is_left_of_its_limits(
    state: KeyState, take: KeyHoldAttempt
) -> None:
    assert key_step(state, OWNER, HOLD_ID, 5, now_us=NOW_US) == take


@given(st.text(alphabet="abc-_09", min_size=15, max_size=15), st.integers(1, 64))
def test_every_shard_is_tried_once(hold_id: str, shards: int) -> None:
    assert sorted(shard_order(hold_id, shards)) == list(range(shards))


@given(
    rpm=st.integers(1, 100_000),
    burst=st.integers(1, 500),
    gaps_us=st.lists(st.integers(0, 5_000_000), min_size=1, max_size=60),
)
def test_the_two_forms_together_are_gcra(rpm: int, burst: int, gaps_us: list[int]) -> None:
    """Against the definition: tat = max(tat, now) + T, allowed while tat - now <= T (burst - 1)."""
    state = RateState.fresh(rpm, burst)
    interval = state.interval_us
    now, tat = NOW_US, 0
    for gap in gaps_us:
        now += gap
        allowed = max(tat, now) - now <= interval * (burst - 1)
        may = state.full_us <= now or state.ready_us <= now
        assert may is allowed
        if allowed:
            tat = max(tat, now) + interval
            state = state.take(rate_form(state.full_us, now), now)
            assert state.full_us == tat
            left = (now + interval * (burst - 1) - tat) // interval + 1
            assert state.to_limit(now).remaining == max(0, left)
            assert state.to_limit(now).limit == burst


@pytest.mark.parametrize("rpm", [1, 5, 7, 11, 60, 599, 600, 7_000, 1_000_000])
def test_c61_a_rate_is_read_as_it_was_set(rpm: int) -> None:
    assert RateState.fresh(rpm, 2).requests_per_minute == rpm


@pytest.mark.parametrize("period", PERIODS)
def test_c94_a_limit_says_when_it_starts_anew(period: Period) -> None:
    assert limit_reached(OWNER, period, 5, NOW_S).resets_s == period_ends_s(period, NOW_S)


LIMITED = replace(KEY, limits_nano_usd={**KEY.limits_nano_usd, "day": 5_000_000_000})
RESETS_S = period_ends_s("day", NOW_S)


@pytest.mark.parametrize(
    ("state", "limit", "message"),
    [
        (
            replace(LIMITED, buckets={"b_20261121": -3}),
            ReachedLimit(
                level="team",
                id="search",
                kind="day",
                limit=5_000_000_000,
                remaining=0,
                resets_s=RESETS_S,
            ),
            "Team `search` has used up its limit of $5 per day. It resets in 11 h.",
        ),
        (
            replace(LIMITED, concurrency=4, holds=4),
            ReachedLimit(level="team", id="search", kind="concurrency", limit=4, remaining=0),
            "Team `search` allows 4 requests at a time.",
        ),
        (
            replace(LIMITED, tokens_per_minute=9, buckets={f"t_{NOW_S // 60}": 0}),
            ReachedLimit(
                level="team",
                id="search",
                kind="tokens",
                limit=9,
                remaining=0,
                resets_s=(NOW_S // 60 + 1) * 60,
            ),
            "Team `search` allows 9 tokens per minute.",
        ),
    ],
)
def test_c61_a_refusal_names_its_level_and_the_limit(
    state: KeyState, limit: ReachedLimit, message: str
) -> None:
    owner = LimitOwner(level="team", id="search", workspace_id="acme")

    refused = key_step(state, owner, HOLD_ID, 5, now_us=NOW_US, tokens=1)

    assert isinstance(refused, GatewayError)
    assert (refused.limit, refused.message) == (limit, message)
    # The headers of a reply have the rates of its key.
    assert (refused.rate_limit, refused.token_limit) == (None, None)


def test_a_level_without_a_rate_writes_none() -> None:
    state = replace(KEY, rate=RateState.fresh(UNLIMITED_RATE, UNLIMITED_BURST))
    assert key_step(state, OWNER, HOLD_ID, 5, now_us=NOW_US) == KeyHoldAttempt(
        amount_nano_usd=5, form="unlimited"
    )
    assert state.rate.take("unlimited", NOW_US) == state.rate
