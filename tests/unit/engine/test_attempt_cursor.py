"""The way through a plan that the engine goes and `explain` imagines.

Keeps C34, C50.
"""

from msgspec.structs import replace

from tests.unit.routing.catalogs import catalog, plan_of, principal, request
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.engine.attempt_cursor import AttemptCursor
from tollgate.engine.retry import Again, Next, Stop
from tollgate.routing.planning.plan import Plan

BUSY = UpstreamError(ErrorCode.PROVIDER_OVERLOADED, "It is overloaded.")
BROKEN = UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "It failed.")


def two_endpoints() -> Plan:
    return plan_of(catalog(), request("acme/large"), principal=principal())


def steps(cursor: AttemptCursor, error: UpstreamError, *, remaining_s: float = 900) -> list[object]:
    """What follows one failure after the other, until that is the end."""
    verdicts: list[object] = []
    while not isinstance(verdicts and verdicts[-1], Stop):
        verdict = cursor.advance(error, remaining_s=remaining_s, jitter=0.5)
        verdicts.append(type(verdict) if isinstance(verdict, Again) else verdict)
    return verdicts


def test_c50_each_endpoint_has_its_own_tries() -> None:
    assert steps(AttemptCursor(two_endpoints()), BROKEN) == [
        Again,
        Again,
        Next(),
        Again,
        Again,
        Stop(),
    ]


def test_c50_a_busy_endpoint_is_left_at_once_unless_it_is_the_last() -> None:
    assert steps(AttemptCursor(two_endpoints()), BUSY) == [Next(), Again, Again, Stop()]


def test_c34_until_the_last_one_an_attempt_has_an_even_share_of_the_time() -> None:
    cursor = AttemptCursor(two_endpoints())
    assert (cursor.first_token_limit_s(100), cursor.first_token_limit_s(900)) == (50, 120)
    cursor.advance(BUSY, remaining_s=900, jitter=0)
    assert cursor.attempt.target.provider == "far"
    assert cursor.first_token_limit_s(100) == 120


def test_c50_an_error_that_moves_nobody_on_is_the_end() -> None:
    cursor = AttemptCursor(replace(two_endpoints(), next_on=frozenset()))
    assert cursor.advance(BUSY, remaining_s=0, jitter=0) == Stop()
    assert cursor.depth == 0
