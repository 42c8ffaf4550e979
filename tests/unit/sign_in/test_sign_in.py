"""A sign-in from its first page to its last session, and each way in which it may be stolen."""

from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec.structs import replace
from tests.unit.sign_in.signing_in import (
    PERSON,
    PUBLIC_URL,
    add_team,
    come_back,
    house,
    refresh,
    sign_in_device,
    state_of,
)
from tests.upstream.issuer import ISSUER

from tollgate.core.errors import AccessError, ErrorCode, RequestError
from tollgate.sign_in.codes import challenge_of
from tollgate.sign_in.refusals import OAuthRefusal
from tollgate.sign_in.tickets import ForProgram
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.rules.level_settings import MemberSettings

LISTENER = "http://127.0.0.1:49152/callback"
VERIFIER = "v" * 43


def program(**changes: str) -> ForProgram:
    fields = {"redirect_uri": LISTENER, "challenge": challenge_of(VERIFIER), "state": "mine"}
    return ForProgram(**{**fields, **changes})


async def test_a_person_becomes_the_member_that_the_first_rule_says() -> None:
    home = house()
    pair = await sign_in_device(home)
    member = home.books.members["acme", "ana@acme.example"]
    assert (member.role, member.team_id, member.display_name) == ("developer", "search", "Ana")
    assert member.subject == f"{ISSUER} u-1"
    principal = await home.keys.authenticate(pair.access_token)
    assert (principal.member_id, pair.expires_in) == ("ana@acme.example", 3_600)


async def test_a_waiting_program_is_told_to_wait_and_not_to_hurry() -> None:
    home = house()
    waiting = await home.grants.wait_for_person()
    for code, status in (("authorization_pending", 400), ("slow_down", 429)):
        with pytest.raises(OAuthRefusal) as refused:
            await home.grants.redeem_device(waiting.device_code, by=PERSON)
        assert (refused.value.code, refused.value.status) == (code, status)
    home.clock.at_s += 5
    with pytest.raises(OAuthRefusal, match="Nobody"):
        await home.grants.redeem_device(waiting.device_code, by=PERSON)


async def test_a_device_code_works_once_and_for_ten_minutes() -> None:
    home = house()
    waiting = await home.grants.wait_for_person()
    await come_back(home, await home.browser.leave_for_device(waiting.user_code.lower()))
    await home.grants.redeem_device(waiting.device_code, by=PERSON)
    late = await home.grants.wait_for_person()
    home.clock.at_s += 601
    for code in (waiting.device_code, late.device_code, "invented"):
        with pytest.raises(OAuthRefusal) as refused:
            await home.grants.redeem_device(code, by=PERSON)
        assert refused.value.code == "expired_token"
    with pytest.raises(RequestError):
        await home.browser.leave_for_device(late.user_code)


async def test_a_stranger_who_begins_sign_ins_leaves_nothing_behind() -> None:
    home = house()
    for _ in range(20):
        await home.browser.leave_for_program(program())
    assert home.codes.values == {}


async def test_a_sign_in_that_takes_more_than_ten_minutes_is_refused() -> None:
    home = house()
    departure = await home.browser.leave_for_program(program())
    home.clock.at_s += 600
    with pytest.raises(AccessError, match="ten minutes"):
        await come_back(home, departure)


async def test_what_a_browser_could_not_keep_is_refused() -> None:
    home = house()
    long = program(redirect_uri="http://127.0.0.1:9/" + "a" * 3_000)
    with pytest.raises(RequestError, match="too long"):
        await home.browser.leave_for_program(long)


async def test_a_state_comes_back_once_and_to_the_browser_that_began() -> None:
    home = house()
    waiting = await home.grants.wait_for_person()
    departure = await home.browser.leave_for_device(waiting.user_code)
    code = home.upstream.visit(departure.url)
    for state, cookie in (("tampered", departure.cookie), (state_of(departure), "of a victim")):
        with pytest.raises(AccessError) as refused:
            await home.browser.arrive(state=state, code=code, cookie=cookie, by=PERSON)
        assert refused.value.code is ErrorCode.PERMISSION_DENIED
    assert home.books.members == {}
    # A stranger with the state alone does not use the sign-in up.
    ways = {"state": state_of(departure), "cookie": departure.cookie}
    await home.browser.arrive(code=code, by=PERSON, **ways)
    with pytest.raises(AccessError, match="invalid_grant"):
        await home.browser.arrive(code=code, by=PERSON, **ways)


async def test_a_code_that_was_stolen_from_another_sign_in_is_refused() -> None:
    home = house()
    first, second = [await home.browser.leave_for_program(program()) for _ in range(2)]
    stolen = home.upstream.visit(first.url)
    with pytest.raises(AccessError, match="invalid_grant"):
        await home.browser.arrive(
            state=state_of(second), code=stolen, cookie=second.cookie, by=PERSON
        )


@pytest.mark.parametrize("nonce", ["of another sign-in", None])
async def test_a_replayed_identity_is_refused_by_its_nonce(nonce: str | None) -> None:
    home = house()
    home.upstream.changes = {"nonce": nonce}
    departure = await home.browser.leave_for_program(program())
    with pytest.raises(AccessError, match="nonce"):
        await come_back(home, departure)


async def test_somebody_whom_no_rule_knows_is_refused_and_the_program_hears_why() -> None:
    home = house()
    home.upstream.person["groups"] = ["sales"]
    waiting = await home.grants.wait_for_person()
    with pytest.raises(AccessError, match="no rule"):
        await come_back(home, await home.browser.leave_for_device(waiting.user_code))
    with pytest.raises(OAuthRefusal, match="no rule") as refused:
        await home.grants.redeem_device(waiting.device_code, by=PERSON)
    assert refused.value.code == "access_denied"
    assert home.books.members == {}


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/callback",
        "http://evil.example:49152/",
        "http://127.0.0.1/without-a-port",
        "http://127.0.0.1.evil.example:80/",
        "http://user@127.0.0.1:49152/",
        f"{PUBLIC_URL}/consoleevil",
        f"{PUBLIC_URL}/v1/keys",
        f"{PUBLIC_URL}/console/?next=1",
        # Pages of others on the same host.
        f"{PUBLIC_URL}/console/../../wiki",
        f"{PUBLIC_URL}/console/%2e%2e/%2e%2e/wiki",
        f"{PUBLIC_URL}/console/\\..\\..\\wiki",
        "http://127.0.0.1:70000/",
        "http://127.0.0.1:8a/",
        "http://[::1/",
        f"{PUBLIC_URL}@evil.example/console",
        "javascript:alert(1)",
        "",
    ],
)
async def test_a_browser_goes_back_to_the_console_or_this_machine_and_nowhere_else(
    address: str,
) -> None:
    with pytest.raises(RequestError, match="redirect_uri"):
        await house().browser.leave_for_program(program(redirect_uri=address))


@pytest.mark.parametrize("challenge", ["A" * 42, "\u00e9" * 43, "A" * 42 + "\n"])
async def test_a_challenge_that_no_verifier_has_is_refused(challenge: str) -> None:
    with pytest.raises(RequestError, match="code_challenge"):
        await house().browser.leave_for_program(program(challenge=challenge))


@pytest.mark.parametrize("address", [LISTENER, f"{PUBLIC_URL}/console", f"{PUBLIC_URL}/console/"])
async def test_a_code_is_redeemed_once_with_its_verifier(address: str) -> None:
    home = house()
    departure = await home.browser.leave_for_program(program(redirect_uri=address))
    url = (await come_back(home, departure)).url
    assert url is not None
    query = parse_qs(urlsplit(url).query)
    assert url.startswith(f"{address}?")
    assert query["state"] == ["mine"]
    pair = await home.grants.redeem_code(
        query["code"][0], verifier=VERIFIER, redirect_uri=address, by=PERSON
    )
    assert (await home.keys.authenticate(pair.access_token)).session
    with pytest.raises(OAuthRefusal, match="used"):
        await home.grants.redeem_code(
            query["code"][0], verifier=VERIFIER, redirect_uri=address, by=PERSON
        )


@pytest.mark.parametrize(
    ("verifier", "address"), [("w" * 43, LISTENER), (VERIFIER, "http://127.0.0.1:1/callback")]
)
async def test_a_code_without_its_verifier_or_address_is_worth_nothing(
    verifier: str, address: str
) -> None:
    home = house()
    url = (await come_back(home, await home.browser.leave_for_program(program()))).url
    code = parse_qs(urlsplit(url or "").query)["code"][0]
    with pytest.raises(OAuthRefusal):
        await home.grants.redeem_code(code, verifier=verifier, redirect_uri=address, by=PERSON)
    # A guess uses the code up.
    with pytest.raises(OAuthRefusal, match="used"):
        await home.grants.redeem_code(code, verifier=VERIFIER, redirect_uri=LISTENER, by=PERSON)
    assert home.books.sessions == {}


async def test_nothing_that_is_stored_opens_anything() -> None:
    home = house()
    waiting = await home.grants.wait_for_person()
    await come_back(home, await home.browser.leave_for_device(waiting.user_code))
    stored = b"".join(value for value, _ in home.codes.values.values()).decode()
    for secret in (waiting.device_code, waiting.user_code, "upstream-0", "ana@acme.example"):
        assert secret not in stored
    assert waiting.device_code not in repr(home.codes.values)
    pair = await home.grants.redeem_device(waiting.device_code, by=PERSON)
    assert pair.refresh_token is not None
    kept = repr(home.codes.values)
    for secret in (*pair.refresh_token.split("."), "upstream-0"):
        assert secret not in kept


async def test_a_member_who_was_removed_is_signed_out_at_once() -> None:
    home = house()
    first = await sign_in_device(home)
    await home.members.remove("acme", "ana@acme.example", by=PERSON)
    with pytest.raises(AccessError):
        await home.keys.authenticate(first.access_token)
    with pytest.raises(OAuthRefusal, match="removed") as refused:
        await refresh(home, first.refresh_token)
    assert refused.value.status == 401
    # Nor can the person come in again.
    with pytest.raises(AccessError, match="removed"):
        await sign_in_device(home)


async def test_c60_the_keys_of_a_leaver_end_when_the_member_is_disabled() -> None:
    """The issuer's refusal of a refresh ends sessions; a stored key never asks the issuer."""
    home = house()
    first = await sign_in_device(home)
    new = NewKey(workspace_id="acme", label="stored", member_id="ana@acme.example")
    key = (await home.keys.create(new, by=PERSON)).secret
    home.upstream.refuses = "invalid_grant"
    with pytest.raises(OAuthRefusal):
        await refresh(home, first.refresh_token)
    await home.keys.authenticate(key)
    await home.members.change(
        "acme", "ana@acme.example", lambda it: replace(it, disabled=True), by=PERSON
    )
    with pytest.raises(AccessError):
        await home.keys.authenticate(key)
    home.upstream.refuses = None
    with pytest.raises(AccessError, match="is disabled"):
        await sign_in_device(home)


async def test_signing_out_ends_the_sign_in() -> None:
    home = house()
    first = await sign_in_device(home)
    assert first.refresh_token is not None
    await home.grants.revoke(first.refresh_token.replace(".", ".x"), by=PERSON)
    await home.grants.revoke("unknown.token", by=PERSON)
    second = await refresh(home, first.refresh_token)
    await home.grants.revoke(second.refresh_token or "", by=PERSON)
    with pytest.raises(OAuthRefusal, match="ended"):
        await refresh(home, second.refresh_token)


async def test_a_member_whom_an_admin_has_added_is_joined_to_the_first_identity() -> None:
    home = house(creates_members=False)
    with pytest.raises(AccessError, match="an admin has to add"):
        await sign_in_device(home)
    await home.members.create("acme", "ana@acme.example", MemberSettings(), by=PERSON)
    await sign_in_device(home)
    member = home.books.members["acme", "ana@acme.example"]
    assert (member.subject, member.team_id) == (f"{ISSUER} u-1", "search")
    home.upstream.person["sub"] = "u-2"
    with pytest.raises(AccessError, match="another identity"):
        await sign_in_device(home)


@pytest.mark.parametrize("changes", [{"email": "no address, no id"}, {"email_verified": False}])
async def test_a_claim_that_names_no_member_is_refused(changes: dict[str, object]) -> None:
    home = house(rules=[{"claims": {"groups": "search"}, "workspace": "acme", "role": "viewer"}])
    home.upstream.person |= changes
    with pytest.raises(AccessError, match="not a valid member id"):
        await sign_in_device(home)


async def test_the_issuers_page_gets_the_parameters_of_the_file() -> None:
    home = house(authorization_parameters={"access_type": "offline"})
    departure = await home.browser.leave_for_program(program())
    assert parse_qs(urlsplit(departure.url).query)["access_type"] == ["offline"]


async def test_a_team_that_is_missing_is_told_and_ends_no_sign_in() -> None:
    home = house()
    home.books.teams.clear()
    waiting = await home.grants.wait_for_person()
    with pytest.raises(RequestError, match="There is no team search"):
        await come_back(home, await home.browser.leave_for_device(waiting.user_code))
    with pytest.raises(OAuthRefusal, match="There is no team search"):
        await home.grants.redeem_device(waiting.device_code, by=PERSON)
    add_team(home.books)
    pair = await sign_in_device(home)
    await home.members.change(
        "acme", "ana@acme.example", lambda it: replace(it, team_id=None), by=PERSON
    )
    home.books.teams.clear()
    with pytest.raises(OAuthRefusal, match="There is no team search") as refused:
        await refresh(home, pair.refresh_token)
    assert refused.value.status == 503
    add_team(home.books)
    assert (await refresh(home, pair.refresh_token)).refresh_token is not None


async def test_an_issuer_that_is_down_while_somebody_signs_in_ends_no_waiting() -> None:
    home = house()
    waiting = await home.grants.wait_for_person()
    departure = await home.browser.leave_for_device(waiting.user_code)
    code = home.upstream.visit(departure.url)
    home.upstream.is_down = True
    with pytest.raises(AccessError):
        await home.browser.arrive(
            state=state_of(departure), code=code, cookie=departure.cookie, by=PERSON
        )
    home.upstream.is_down = False
    with pytest.raises(OAuthRefusal) as refused:
        await home.grants.redeem_device(waiting.device_code, by=PERSON)
    assert refused.value.code == "authorization_pending"
    # The same code of the terminal works at the next try.
    await come_back(home, await home.browser.leave_for_device(waiting.user_code))
    assert (await home.grants.redeem_device(waiting.device_code, by=PERSON)).expires_in == 3_600
