"""Sessions of a role: when AWS is asked for one, and which names they have.

Keeps C103.
"""

import asyncio
import re

import pytest

from tests.stores import HandClock
from tollgate.aws.container_credentials import CredentialsUnavailable, Lease
from tollgate.aws.role_sessions import RoleSession, RoleSessions, session_name
from tollgate.aws.sigv4 import Credentials

HOUR_S = 3600.0
# "AssumeRole", AWS STS API reference: the pattern and the length of RoleSessionName.
NAME = re.compile(r"[\w+=,.@-]{2,64}", re.ASCII)


class Sts:
    """A stand-in for STS that numbers its sessions.

    While `broken`, it refuses calls; while `held` is cleared, it does not answer. `lost` has the
    numbers of calls that lose their connection.
    """

    def __init__(self, clock: HandClock) -> None:
        self.begun: list[str] = []
        self.broken = False
        self.lost: set[int] = set()
        self.held = asyncio.Event()
        self.held.set()
        self._clock = clock

    async def assume(self, name: str) -> Lease:
        self.begun.append(name)
        number = len(self.begun)
        await self.held.wait()
        if self.broken or number in self.lost:
            raise CredentialsUnavailable("STS: AccessDenied")
        credentials = Credentials(f"{name}-{number}", "secret", "token")
        return Lease(credentials, self._clock.now_s() + HOUR_S)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def sts(clock: HandClock) -> Sts:
    return Sts(clock)


@pytest.fixture
def sessions(sts: Sts, clock: HandClock) -> RoleSessions:
    return RoleSessions(sts.assume, clock)


async def used(session: RoleSession) -> str:
    await session.prepare()
    await asyncio.sleep(0)
    credentials = session.current()
    assert credentials is not None
    return credentials.access_key_id


async def test_a_team_begins_one_session_an_hour_for_all_its_requests(
    sessions: RoleSessions, sts: Sts, clock: HandClock
) -> None:
    hours = 10
    start = clock.now
    while clock.now < start + hours * HOUR_S:
        await asyncio.gather(*(used(sessions.session("a@acme")) for _ in range(3)))
        clock.now += 60
    # A session is renewed five minutes before its end.
    assert len(sts.begun) == 11


async def test_a_team_never_uses_the_session_of_another(sessions: RoleSessions) -> None:
    names = ["a@acme", "b@acme", "@acme", "a@other"]
    found = await asyncio.gather(*(used(sessions.session(name)) for name in names * 2))
    assert [each.rpartition("-")[0] for each in found] == names * 2


async def test_a_renewal_delays_no_request(
    sessions: RoleSessions, sts: Sts, clock: HandClock
) -> None:
    session = sessions.session("a@acme")
    assert await used(session) == "a@acme-1"
    sts.held.clear()
    clock.now += HOUR_S - 299
    assert await used(session) == "a@acme-1"
    sts.held.set()
    await asyncio.sleep(0)
    assert await used(session) == "a@acme-2"
    assert len(sts.begun) == 2


async def test_while_a_session_lasts_a_refusal_of_its_renewal_is_not_repeated_at_once(
    sessions: RoleSessions, sts: Sts, clock: HandClock
) -> None:
    session = sessions.session("a@acme")
    await used(session)
    sts.broken = True
    clock.now += HOUR_S - 299
    for _ in range(3):
        assert await used(session) == "a@acme-1"
    assert len(sts.begun) == 2
    clock.now += 10
    await used(session)
    assert len(sts.begun) == 3


async def test_a_request_fails_without_a_session_and_the_next_one_asks_again(
    sessions: RoleSessions, sts: Sts, clock: HandClock
) -> None:
    session = sessions.session("a@acme")
    sts.broken = True
    waiting = await asyncio.gather(*(session.prepare() for _ in range(5)), return_exceptions=True)
    assert [str(each) for each in waiting] == ["STS: AccessDenied"] * 5
    # The four that joined the first call ask once more, together: that call may be an old one.
    assert len(sts.begun) == 2
    sts.broken = False
    assert await used(session) == "a@acme-3"
    # A session that has ended is not used, even if AWS refuses a new one.
    sts.broken = True
    clock.now += HOUR_S - 60
    with pytest.raises(CredentialsUnavailable):
        await session.prepare()


async def test_a_renewal_that_was_frozen_with_its_process_fails_no_request(
    sessions: RoleSessions, sts: Sts, clock: HandClock
) -> None:
    session = sessions.session("a@acme")
    await used(session)
    sts.held.clear()
    clock.now += HOUR_S - 299
    await used(session)
    # Lambda freezes the process, and the connection to STS is lost meanwhile.
    sts.lost.add(2)
    clock.now += HOUR_S
    thawed = asyncio.create_task(session.prepare())
    await asyncio.sleep(0)
    sts.held.set()
    await thawed
    assert await used(session) == "a@acme-3"


async def test_a_caller_that_leaves_does_not_end_the_call_that_others_wait_for(
    sessions: RoleSessions, sts: Sts
) -> None:
    session = sessions.session("a@acme")
    sts.held.clear()
    leaving, staying = (asyncio.create_task(session.prepare()) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.sleep(0)
    sts.held.set()
    await staying
    assert (await used(session), len(sts.begun)) == ("a@acme-1", 1)


async def test_the_number_of_sessions_in_memory_is_bounded(sessions: RoleSessions) -> None:
    first = sessions.session("0@acme")
    for number in range(1, 2000):
        sessions.session(f"{number}@acme")
    assert sessions.session("0@acme") is first
    sessions.session("one@more")
    assert sessions.session("0@acme") is not first


def test_names_of_sessions_tell_teams_and_workspaces_apart() -> None:
    long = "t" * 64
    ids = [("acme", "a"), ("acme", None), ("a", None), ("b", "a"), ("acme", "x.y_z-9")]
    ids += [(long[:63], long), (long[:62] + "u", long), (long, None), (long[:62], None)]
    names = [session_name(*each) for each in ids]
    assert names[:5] == ["a@acme", "@acme", "@a", "a@b", "x.y_z-9@acme"]
    assert len(set(names)) == len(ids)
    assert all(NAME.fullmatch(name) for name in names)
