"""Programs of one person that refresh at once, at an issuer that rotates, over a store that fails.

However the calls interleave, one refresh token is alive at most, the issuer sees no token twice
unless the store lost it, and a sign-in that ends ends whole.
"""

import asyncio
import random
from typing import Any

import pytest

from tests.nightly import first
from tests.unit.sign_in.signing_in import House, house, refresh, sign_in_device
from tollgate.core.errors import AccessError, ErrorCode, LedgerError
from tollgate.sign_in.grants import TokenPair
from tollgate.sign_in.refusals import OAuthRefusal

PROGRAMS = 4
TURNS = 6


class FailingStore:
    """Makes calls of a store fail before or after they are applied, or lose their replies."""

    def __init__(self, home: House, draws: random.Random) -> None:
        self._draws = draws
        self.lost_after_token = 0
        self._home = home
        self.is_quiet = False
        for store, name in ((home.codes, "replace"), (home.sessions, "renew")):
            setattr(store, name, self._failing(name, getattr(store, name)))

    def _failing(self, name: str, call: Any) -> Any:
        async def failing(*words: Any, **named: Any) -> Any:
            way = "works" if self.is_quiet else self._draws.choice(("works",) * 6 + WAYS)
            await asyncio.sleep(0)
            if way == "fails":
                # The issuer's new token is lost if the write that keeps it does not happen.
                self.lost_after_token += name == "replace"
                raise LedgerError(ErrorCode.SERVICE_UNAVAILABLE, "The store is down.")
            done = await call(*words, **named)
            await asyncio.sleep(0)
            if way == "fails late":
                raise LedgerError(ErrorCode.SERVICE_UNAVAILABLE, "The store is down.")
            return False if way == "loses its reply" and name == "replace" else done

        return failing


WAYS = ("fails", "fails late", "loses its reply")


class Machine:
    """The file of credentials that the programs of a person share."""

    def __init__(self, pair: TokenPair) -> None:
        self.pair = pair
        self.issued = [pair]
        self.is_over = False
        self.refreshing = 0

    async def run(self, home: House, draws: random.Random) -> None:
        """Refresh as an agent does: read the shared token, and wait if another one is faster."""
        for _ in range(TURNS):
            token = self.pair.refresh_token
            self.refreshing += 1
            try:
                pair = await refresh(home, token)
            except OAuthRefusal as refused:
                self.is_over |= refused.code == "invalid_grant"
            except LedgerError:
                pass
            else:
                assert not self.is_over
                self.pair = pair
                self.issued.append(pair)
            self.refreshing -= 1
            # Every call of a refresh has a time limit, so that none takes as long as a claim.
            home.clock.at_s += 0 if self.refreshing else draws.choice((0, 1, 5, 16))
            await asyncio.sleep(0)


@pytest.mark.parametrize("seed", first(10, range(300)))
async def test_refreshes_at_once_under_faults_lose_no_sign_in_unseen(seed: int) -> None:
    draws, home = random.Random(seed), house()
    home.upstream.rotates = True
    machine = Machine(await sign_in_device(home))
    failing = FailingStore(home, draws)
    await asyncio.gather(*(machine.run(home, draws) for _ in range(PROGRAMS)))
    failing.is_quiet = True
    home.clock.at_s += 60

    alive, refusals = [], set()
    for pair in reversed(machine.issued):
        try:
            alive.append(await refresh(home, pair.refresh_token))
        except OAuthRefusal as refused:
            refusals.add(refused.code)
    assert len(alive) <= 1
    assert refusals <= {"invalid_grant", "temporarily_unavailable"}
    # A token that the issuer saw twice was lost by the store after the issuer had changed it.
    assert len(home.upstream.reused) <= failing.lost_after_token
    if not alive:
        for pair in machine.issued:
            with pytest.raises(AccessError):
                await home.keys.authenticate(pair.access_token)
        assert home.books.sign_ins == {}
