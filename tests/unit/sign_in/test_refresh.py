"""Refresh tokens: each is good for one pair, and two programs that refresh at once end nothing."""

import asyncio
from typing import Any

import pytest
from tests.unit.sign_in.signing_in import PERSON, House, house, refresh, sign_in_device
from tests.upstream.issuer import FIRST_KEY, ISSUER, SECOND_KEY

from tollgate.core.errors import AccessError, ErrorCode, LedgerError
from tollgate.sign_in.grants import TokenPair
from tollgate.sign_in.refusals import OAuthRefusal


async def test_a_refresh_asks_the_issuer_and_gives_a_fresh_pair() -> None:
    home = house()
    first = await sign_in_device(home)
    home.upstream.person["groups"] = ["admins"]
    second = await refresh(home, first.refresh_token)
    assert second.access_token != first.access_token
    assert second.refresh_token != first.refresh_token
    # Whoever moves to another group at the issuer has its rights from then on.
    assert home.books.members["acme", "ana@acme.example"].role == "admin"
    assert (await refresh(home, second.refresh_token)).refresh_token is not None


async def test_a_refresh_token_that_is_used_again_ends_its_sign_in() -> None:
    home = house()
    first = await sign_in_device(home)
    second = await refresh(home, first.refresh_token)
    home.clock.at_s += 31
    for token in (first.refresh_token, second.refresh_token):
        with pytest.raises(OAuthRefusal) as refused:
            await refresh(home, token)
        assert (refused.value.code, refused.value.status) == ("invalid_grant", 401)


async def test_two_programs_that_refresh_at_once_end_nothing() -> None:
    home = house()
    first = await sign_in_device(home)
    second = await refresh(home, first.refresh_token)
    with pytest.raises(OAuthRefusal) as refused:
        await refresh(home, first.refresh_token)
    assert (refused.value.code, refused.value.status) == ("temporarily_unavailable", 503)
    assert (await refresh(home, second.refresh_token)).refresh_token is not None


@pytest.mark.parametrize("repeats_identity", [True, False])
async def test_somebody_whom_the_issuer_has_removed_is_signed_out_at_the_next_refresh(
    repeats_identity: bool,
) -> None:
    home = house()
    home.upstream.repeats_identity = repeats_identity
    first = await sign_in_device(home)
    second = await refresh(home, first.refresh_token)
    home.upstream.refuses = "invalid_grant"
    for _ in range(2):
        with pytest.raises(OAuthRefusal) as refused:
            await refresh(home, second.refresh_token)
        assert (refused.value.code, refused.value.status) == ("invalid_grant", 401)


async def test_an_issuer_that_is_down_signs_nobody_out() -> None:
    home = house()
    first = await sign_in_device(home)
    home.upstream.is_down = True
    with pytest.raises(OAuthRefusal) as refused:
        await refresh(home, first.refresh_token)
    assert refused.value.status == 503
    home.upstream.is_down = False
    assert (await refresh(home, first.refresh_token)).refresh_token is not None


async def test_another_person_does_not_come_by_a_refresh() -> None:
    home = house()
    first = await sign_in_device(home)
    home.upstream.person["sub"] = "u-2"
    with pytest.raises(OAuthRefusal, match="another identity"):
        await refresh(home, first.refresh_token)


async def test_without_a_refresh_token_of_the_issuer_a_session_is_the_last_one() -> None:
    home = house()
    home.upstream.gives_refresh_token = False
    assert (await sign_in_device(home)).refresh_token is None


async def test_an_upstream_token_is_sent_once_by_two_programs_that_refresh_at_once() -> None:
    """An issuer that rotates its tokens ends the sign-in when one comes a second time."""
    home = house()
    first = await sign_in_device(home)
    home.upstream.hold_back()
    refreshing = asyncio.create_task(refresh(home, first.refresh_token))
    await home.upstream.asked.wait()
    # The issuer may take fifteen seconds to answer.
    home.clock.at_s += 14
    other = asyncio.create_task(refresh(home, first.refresh_token))
    await asyncio.sleep(0)
    home.upstream.answers.set()

    with pytest.raises(OAuthRefusal) as refused:
        await other
    assert (refused.value.code, refused.value.status) == ("temporarily_unavailable", 503)
    assert home.upstream.refreshed == ["upstream-0"]
    second = await refreshing
    assert (await refresh(home, second.refresh_token)).refresh_token is not None


async def test_a_refresh_that_never_ended_is_done_again_after_fifteen_seconds() -> None:
    home = house()
    first = await sign_in_device(home)
    home.upstream.hold_back()
    refreshing = asyncio.create_task(refresh(home, first.refresh_token))
    await home.upstream.asked.wait()
    # Its process is gone.
    refreshing.cancel()
    home.upstream.answers.set()
    with pytest.raises(OAuthRefusal, match="Another program is refreshing"):
        await refresh(home, first.refresh_token)
    home.clock.at_s += 15
    assert (await refresh(home, first.refresh_token)).refresh_token is not None


async def are_over(home: House, *pairs: TokenPair) -> bool:
    """Whether no access token and no refresh token of these pairs works."""
    for pair in reversed(pairs):
        with pytest.raises(AccessError):
            await home.keys.authenticate(pair.access_token)
        with pytest.raises(OAuthRefusal) as refused:
            await refresh(home, pair.refresh_token)
        assert refused.value.code == "invalid_grant"
    return home.books.sign_ins == {}


@pytest.mark.parametrize("token", ["refresh_token", "access_token"])
async def test_a_revoked_token_ends_the_session_with_all_its_tokens(token: str) -> None:
    """Keeps C90: RFC 7009, 2.1."""
    home = house()
    first = await sign_in_device(home)
    second = await refresh(home, first.refresh_token)
    await home.keys.authenticate(first.access_token)
    await home.grants.revoke(getattr(second, token), by=PERSON)
    assert await are_over(home, first, second)


async def test_a_refresh_token_that_is_used_again_ends_the_access_tokens_too() -> None:
    home = house()
    first = await sign_in_device(home)
    second = await refresh(home, first.refresh_token)
    home.clock.at_s += 31
    with pytest.raises(OAuthRefusal):
        await refresh(home, first.refresh_token)
    assert await are_over(home, first, second)


async def test_a_session_that_an_administrator_ended_is_not_renewed() -> None:
    home = house()
    first = await sign_in_device(home)
    second = await refresh(home, first.refresh_token)
    [session] = (await home.sessions.list("acme", "ana@acme.example")).found
    assert session.renewable
    await home.sessions.end("acme", "ana@acme.example", session.id, by=PERSON)
    assert await are_over(home, second)


async def test_a_person_whom_the_issuer_removed_loses_every_token_at_the_refresh() -> None:
    home = house()
    first = await sign_in_device(home)
    home.upstream.refuses = "invalid_grant"
    with pytest.raises(OAuthRefusal):
        await refresh(home, first.refresh_token)
    assert await are_over(home, first)


async def test_a_rule_that_moves_a_person_to_another_workspace_ends_the_session_there() -> None:
    rules = [
        {"claims": {"groups": "search"}, "workspace": "acme", "role": "viewer"},
        {"claims": {"groups": "other"}, "workspace": "other", "role": "viewer"},
    ]
    home = house(rules=rules)
    first = await sign_in_device(home)
    home.upstream.person["groups"] = ["other"]
    second = await refresh(home, first.refresh_token)
    assert (await home.keys.authenticate(second.access_token)).workspace_id == "other"
    with pytest.raises(AccessError):
        await home.keys.authenticate(first.access_token)


async def test_a_rotated_token_outlives_a_refusal_that_comes_after_it() -> None:
    home = house()
    home.upstream.rotates = True
    first = await sign_in_device(home)
    team = home.books.teams.pop(("acme", "search"))
    home.books.members.clear()
    with pytest.raises(OAuthRefusal) as refused:
        await refresh(home, first.refresh_token)
    assert refused.value.status == 503
    home.books.teams["acme", "search"] = team
    second = await refresh(home, first.refresh_token)
    assert (await refresh(home, second.refresh_token)).refresh_token is not None
    assert home.upstream.reused == []


async def test_a_rotated_token_outlives_a_store_that_fails_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = house()
    home.upstream.rotates = True
    first = await sign_in_device(home)

    async def fail(*_: object, **__: object) -> None:
        raise LedgerError(ErrorCode.SERVICE_UNAVAILABLE, "The store is down.")

    with monkeypatch.context() as down:
        down.setattr(home.sessions, "renew", fail)
        with pytest.raises(LedgerError):
            await refresh(home, first.refresh_token)
    home.clock.at_s += 15
    assert (await refresh(home, first.refresh_token)).refresh_token is not None
    assert home.upstream.reused == []


@pytest.mark.parametrize("write", [0, 1, 2])
async def test_a_lost_reply_to_a_write_ends_no_sign_in(
    write: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client repeats a conditional write whose reply was lost, and then finds it refused."""
    home = house()
    first = await sign_in_device(home)
    replace, written = home.codes.replace, []

    async def lose(*words: Any, **named: Any) -> bool:
        written.append(words)
        return await replace(*words, **named) and len(written) - 1 != write

    monkeypatch.setattr(home.codes, "replace", lose)
    second = await refresh(home, first.refresh_token)
    assert len(written) == 3
    assert (await refresh(home, second.refresh_token)).refresh_token is not None


async def test_a_refresh_that_is_overtaken_after_fifteen_seconds_ends_nothing() -> None:
    home = house()
    home.upstream.rotates = True
    first = await sign_in_device(home)
    home.clock.at_s += 31
    # The issuer signs with a new key, and is slow to show it.
    home.upstream.keys = [FIRST_KEY, SECOND_KEY]
    home.upstream.signs_with = SECOND_KEY
    home.upstream.key_answers.clear()
    slow = asyncio.create_task(refresh(home, first.refresh_token))
    for _ in range(20):
        await asyncio.sleep(0)
    assert home.upstream.fetched.count(f"{ISSUER}/keys") == 2
    home.clock.at_s += 15
    fast = asyncio.create_task(refresh(home, first.refresh_token))
    for _ in range(20):
        await asyncio.sleep(0)
    assert home.upstream.refreshed == ["upstream-0", "upstream-1"]
    home.upstream.key_answers.set()
    with pytest.raises(OAuthRefusal) as refused:
        await slow
    assert refused.value.status == 503
    second = await fast
    await home.keys.authenticate(second.access_token)
    assert (await refresh(home, second.refresh_token)).refresh_token is not None
    assert home.upstream.reused == []
