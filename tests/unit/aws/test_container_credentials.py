"""Credentials that end: when they are fetched, and what is used when they cannot be."""

import asyncio

import pytest

from tests.stores import NOON_S, HandClock
from tollgate.aws.container_credentials import (
    FRESH_FOR_S,
    CredentialsUnavailable,
    Lease,
    RotatingCredentials,
)
from tollgate.aws.sigv4 import Credentials

HOUR_S = 3600.0


class Endpoint:
    """Numbers its callers; `broken` refuses them."""

    def __init__(self, clock: HandClock) -> None:
        self.asked = 0
        self.broken = False
        self._clock = clock

    async def fetch(self) -> Lease:
        self.asked += 1
        await asyncio.sleep(0)
        if self.broken:
            raise CredentialsUnavailable("HTTP 500")
        return Lease(
            Credentials(f"id-{self.asked}", "secret", "token"), self._clock.now_s() + HOUR_S
        )


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def endpoint(clock: HandClock) -> Endpoint:
    return Endpoint(clock)


@pytest.fixture
def rotating(endpoint: Endpoint, clock: HandClock) -> RotatingCredentials:
    return RotatingCredentials(endpoint.fetch, clock)


def used(rotating: RotatingCredentials) -> str | None:
    current = rotating.current()
    return current and current.access_key_id


async def test_they_are_fetched_once_for_all_who_wait(
    rotating: RotatingCredentials, endpoint: Endpoint
) -> None:
    assert used(rotating) is None
    await asyncio.gather(*(rotating.renew() for _ in range(5)))
    assert (used(rotating), endpoint.asked) == ("id-1", 1)


async def test_they_are_renewed_while_a_request_that_begins_now_could_outlast_them(
    rotating: RotatingCredentials, endpoint: Endpoint, clock: HandClock
) -> None:
    await rotating.renew()
    clock.now = NOON_S + HOUR_S - FRESH_FOR_S - 1
    await rotating.renew()
    assert used(rotating) == "id-1"
    clock.now += 1
    await rotating.renew()
    assert used(rotating) == "id-2"


async def test_while_they_last_an_endpoint_that_fails_is_not_asked_all_the_time(
    rotating: RotatingCredentials, endpoint: Endpoint, clock: HandClock
) -> None:
    await rotating.renew()
    endpoint.broken = True
    clock.now = NOON_S + HOUR_S - FRESH_FOR_S
    for _ in range(3):
        await rotating.renew()
    assert (used(rotating), endpoint.asked) == ("id-1", 2)
    clock.now = NOON_S + HOUR_S
    assert used(rotating) is None


async def test_what_is_forgotten_is_fetched_again_at_once(
    rotating: RotatingCredentials, endpoint: Endpoint
) -> None:
    await rotating.renew()
    rotating.forget()
    assert used(rotating) is None
    await rotating.renew()
    assert used(rotating) == "id-2"
