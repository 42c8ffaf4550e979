"""Refresh tokens: each is good for one pair, and two programs that refresh at once end nothing."""

import asyncio

import pytest
from tests.unit.sign_in.signing_in import house, refresh, sign_in_device

from tollgate.sign_in.grants import OAuthRefusal


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
