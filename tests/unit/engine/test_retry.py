"""What follows a failure: a table for every error code.

Keeps C34, C44, C50.
"""

import pytest
from msgspec.structs import replace

from tests.cells import cells
from tollgate.core.errors import ErrorCode, MissingCredentials, UpstreamError
from tollgate.engine.retry import Again, Next, RetryDecision, Situation, Stop, decide
from tollgate.routing.chains import NEXT_ON_DEFAULT, RetrySection

RETRY = RetrySection(retries_max=2, backoff_min_s=0.25, backoff_max_s=4.0)
LAST = Situation(tries=1, another_left=False, remaining_s=100, next_on=frozenset(NEXT_ON_DEFAULT))
CHAIN = replace(LAST, another_left=True)
PASSING = {
    ErrorCode.PROVIDER_RATE_LIMIT,
    ErrorCode.PROVIDER_OVERLOADED,
    ErrorCode.PROVIDER_UNAVAILABLE,
}
MOVING = {
    *PASSING,
    ErrorCode.PROVIDER_TIMEOUT,
    ErrorCode.PROVIDER_AUTH,
    ErrorCode.CONTEXT_LENGTH_EXCEEDED,
    ErrorCode.CONTENT_FILTER,
}


def verdict(
    code: ErrorCode,
    situation: Situation,
    *,
    retry_after_s: float | None = None,
    jitter: float = 0.0,
) -> RetryDecision:
    return decide(
        UpstreamError(code, "It failed.", retry_after_s=retry_after_s), situation, RETRY, jitter
    )


@cells("code", ErrorCode)
def test_c50_at_the_end_of_a_chain_only_what_passes_is_tried_again(code: ErrorCode) -> None:
    assert verdict(code, LAST) == (Again(0.125) if code in PASSING else Stop())


@cells("code", ErrorCode)
def test_c50_within_a_chain_a_failure_moves_on_except_the_callers_own(code: ErrorCode) -> None:
    if code is ErrorCode.PROVIDER_UNAVAILABLE:
        expected: RetryDecision = Again(0.125)
    else:
        expected = Next() if code in MOVING else Stop()
    assert verdict(code, CHAIN) == expected


@cells("code", ErrorCode)
def test_c50_without_next_on_nothing_moves_on(code: ErrorCode) -> None:
    assert verdict(code, replace(CHAIN, next_on=frozenset())) == verdict(code, LAST)


@pytest.mark.parametrize(
    ("another_left", "expected"),
    [(True, Next()), (False, Stop())],
    ids=["chain", "end"],
)
def test_c44_an_absent_key_moves_on_along_every_chain(
    another_left: bool, expected: RetryDecision
) -> None:
    absent = MissingCredentials("The provider acme has no key.")
    assert absent.code is ErrorCode.PROVIDER_AUTH
    situation = replace(CHAIN, another_left=another_left, next_on=frozenset())
    assert decide(absent, situation, RETRY, 0.0) == expected


@pytest.mark.parametrize(("tries", "again"), [(1, True), (2, True), (3, False)])
def test_c50_one_endpoint_is_retried_twice(tries: int, again: bool) -> None:
    at_the_end = verdict(ErrorCode.PROVIDER_UNAVAILABLE, replace(LAST, tries=tries))
    assert isinstance(at_the_end, Again if again else Stop)
    in_a_chain = verdict(ErrorCode.PROVIDER_UNAVAILABLE, replace(CHAIN, tries=tries))
    assert isinstance(in_a_chain, Again if again else Next)


@pytest.mark.parametrize(
    ("tries", "jitter", "delay_s"),
    [(1, 0.0, 0.125), (1, 1.0, 0.25), (2, 0.0, 0.25), (2, 0.5, 0.375)],
)
def test_c50_pauses_double_and_are_jittered(tries: int, jitter: float, delay_s: float) -> None:
    situation = replace(LAST, tries=tries)
    assert verdict(ErrorCode.PROVIDER_OVERLOADED, situation, jitter=jitter) == Again(delay_s)


@pytest.mark.parametrize(
    ("retry_after_s", "expected"),
    [(0.0, Again(0.125)), (3.0, Again(3.0)), (4.0, Again(4.0)), (4.1, Stop())],
)
def test_c50_retry_after_is_honoured_up_to_a_cap(
    retry_after_s: float, expected: RetryDecision
) -> None:
    assert verdict(ErrorCode.PROVIDER_RATE_LIMIT, LAST, retry_after_s=retry_after_s) == expected


def test_c50_an_endpoint_that_asks_for_too_long_a_pause_is_left() -> None:
    moved = verdict(ErrorCode.PROVIDER_UNAVAILABLE, CHAIN, retry_after_s=60)
    assert moved == Next()


@pytest.mark.parametrize(("another_left", "expected"), [(True, Next()), (False, Stop())])
def test_c34_no_pause_outlasts_the_deadline(another_left: bool, expected: RetryDecision) -> None:
    situation = replace(LAST, another_left=another_left, remaining_s=0.1)
    assert verdict(ErrorCode.PROVIDER_UNAVAILABLE, situation) == expected
