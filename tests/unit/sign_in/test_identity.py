"""A token is taken only if the issuer signed it, for this gateway, for now."""

import asyncio
import base64
import hmac
import json
from typing import Any

import pytest
from joserfc.jwk import ECKey, RSAKey
from tests.unit.sign_in.signing_in import house
from tests.upstream.issuer import FIRST_KEY, ISSUER, SECOND_KEY

from tollgate.core.errors import AccessError, ErrorCode


async def test_an_identity_is_that_of_its_token() -> None:
    home = house()
    identity = await home.issuer.identify(home.upstream.token())
    assert identity.name == f"{ISSUER} u-1"
    assert identity.claims["groups"] == ["search"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"iss": "https://evil.example"}, "'iss'"),
        ({"iss": None}, "'iss'"),
        ({"aud": "another"}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"aud": ["tollgate", "another"]}, "no azp"),
        ({"azp": "another"}, "another client"),
        ({"exp": 1_799_999_900}, "expired"),
        ({"exp": None}, "'exp'"),
        ({"nbf": 1_800_000_100}, "not yet valid"),
        ({"iat": 1_800_000_100}, "in the future"),
        ({"iat": None}, "'iat'"),
        ({"sub": None}, "'sub'"),
        ({"sub": ""}, "sub"),
        ({"events": {"http://schemas.openid.net/event/backchannel-logout": {}}}, "another kind"),
    ],
)
async def test_a_token_with_a_claim_that_is_not_right_is_refused(
    changes: dict[str, Any], reason: str
) -> None:
    home = house()
    with pytest.raises(AccessError) as refused:
        await home.issuer.identify(home.upstream.token(**changes))
    assert refused.value.code is ErrorCode.INVALID_API_KEY
    assert reason in refused.value.message


async def test_clocks_may_differ_by_a_minute() -> None:
    home = house()
    token = home.upstream.token(exp=1_800_000_001, iat=1_799_999_900)
    home.clock.at_s += 59
    assert (await home.issuer.identify(token)).subject == "u-1"


def _unsigned(algorithm: str) -> str:
    parts = [{"alg": algorithm, "kid": "first"}, {"iss": ISSUER, "aud": "tollgate", "sub": "u-1"}]
    texts = [base64.urlsafe_b64encode(json.dumps(it).encode()).rstrip(b"=") for it in parts]
    return b".".join([*texts, b""]).decode()


@pytest.mark.parametrize("algorithm", ["none", "None", "HS256", "dir"])
async def test_nothing_but_signatures_of_private_keys_is_taken(algorithm: str) -> None:
    home = house()
    with pytest.raises(AccessError, match="algorithm"):
        await home.issuer.identify(_unsigned(algorithm))
    # Not even a request for keys is sent for it.
    assert home.upstream.fetched == []


async def test_a_public_key_is_no_shared_secret() -> None:
    home = house()
    signed = _unsigned("HS256").removesuffix(".")
    mark = hmac.digest(FIRST_KEY.as_pem(private=False), signed.encode(), "sha256")
    forged = f"{signed}.{base64.urlsafe_b64encode(mark).rstrip(b'=').decode()}"
    with pytest.raises(AccessError, match="algorithm"):
        await home.issuer.identify(forged)


async def test_a_signature_of_another_key_is_refused() -> None:
    home = house()
    forger = RSAKey.generate_key(2048, {"kid": "first"})
    with pytest.raises(AccessError, match="refused"):
        await home.issuer.identify(home.upstream.token(key=forger))


async def test_an_algorithm_of_another_kind_of_key_is_refused() -> None:
    home = house()
    forger = ECKey.generate_key("P-256", {"kid": "first"})
    with pytest.raises(AccessError, match="refused"):
        await home.issuer.identify(home.upstream.token(key=forger, header={"alg": "ES256"}))


@pytest.mark.parametrize("typ", ["logout+jwt", "secevent+jwt", "dpop+jwt"])
async def test_a_token_of_another_kind_is_refused(typ: str) -> None:
    home = house()
    with pytest.raises(AccessError, match="another kind"):
        await home.issuer.identify(home.upstream.token(header={"typ": typ}))


@pytest.mark.parametrize(
    "token", ["", "a.b", "a.b.c.d.e", "..", "ä.b.c", "x" * 20_000, "e30.e30.x"]
)
async def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(AccessError, match="not a signed JWT"):
        await house().issuer.identify(token)


async def test_a_key_that_the_issuer_adds_is_found_at_its_first_token() -> None:
    home = house()
    await home.issuer.identify(home.upstream.token())
    home.upstream.keys, home.upstream.signs_with = [FIRST_KEY, SECOND_KEY], SECOND_KEY
    home.clock.at_s += 31
    assert (await home.issuer.identify(home.upstream.token())).subject == "u-1"


async def test_a_key_that_the_issuer_withdraws_is_refused_within_ten_minutes() -> None:
    home = house()
    token = home.upstream.token(exp=1_800_010_000)
    await home.issuer.identify(token)
    home.upstream.keys = [SECOND_KEY]
    home.clock.at_s += 601
    with pytest.raises(AccessError, match="no key with the token's key id"):
        await home.issuer.identify(token)


async def test_invented_keys_cost_two_fetches_a_minute() -> None:
    home = house()
    for number in range(100):
        with pytest.raises(AccessError, match="no key with the token's key id"):
            await home.issuer.identify(home.upstream.token(header={"kid": f"invented {number}"}))
        home.clock.at_s += 0.5
    assert home.upstream.fetched.count(f"{ISSUER}/keys") == 2


async def test_invented_keys_at_a_slow_issuer_delay_nobody_and_share_one_fetch() -> None:
    home = house()
    honest, slow = home.upstream.token(), home.upstream
    await home.issuer.identify(honest)
    home.clock.at_s += 31
    slow.key_answers.clear()
    forged = [slow.token(header={"kid": f"invented {number}"}) for number in range(9)]
    waiting = [asyncio.create_task(home.issuer.identify(token)) for token in forged]
    for _ in range(3):
        await asyncio.sleep(0)
    # The key of an honest token is known.
    async with asyncio.timeout(1):
        await home.issuer.identify(honest)
    slow.key_answers.set()
    refusals = await asyncio.gather(*waiting, return_exceptions=True)
    assert all("no key with the token's key id" in str(refused) for refused in refusals)
    assert slow.fetched.count(f"{ISSUER}/keys") == 2


async def test_sign_ins_that_wait_for_keys_share_the_failure_of_one_fetch() -> None:
    home = house()
    slow, token = home.upstream, home.upstream.token()
    slow.key_answers.clear()
    waiting = [asyncio.create_task(home.issuer.identify(token)) for _ in range(9)]
    for _ in range(3):
        await asyncio.sleep(0)
    slow.is_down = True
    slow.key_answers.set()
    for refused in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(refused, AccessError)
        assert refused.code is ErrorCode.SERVICE_UNAVAILABLE
    assert slow.fetched.count(f"{ISSUER}/keys") == 1
    # The next one asks again.
    slow.is_down = False
    home.clock.at_s += 1
    assert (await home.issuer.identify(token)).subject == "u-1"


async def test_an_audience_that_the_file_names_is_taken() -> None:
    home = house(audiences=["api://tollgate"])
    token = home.upstream.token(aud="api://tollgate", azp="a-cli", header={"typ": "at+jwt"})
    assert (await home.issuer.identify(token)).subject == "u-1"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"issuer": "https://evil.example"}, "a different issuer"),
        ({"jwks_uri": "http://login.example/keys"}, "without https"),
        ({"token_endpoint": "https://user@login.example/token"}, "without https"),
        ({"jwks_uri": None}, "no usable reply"),
    ],
)
async def test_metadata_that_cannot_be_trusted_refuses_everybody(
    changes: dict[str, Any], reason: str
) -> None:
    home = house()
    home.upstream.metadata |= changes
    with pytest.raises(AccessError, match=reason) as refused:
        await home.issuer.identify(home.upstream.token())
    assert refused.value.code is ErrorCode.SERVICE_UNAVAILABLE


async def test_an_issuer_that_does_not_answer_refuses_everybody_for_now() -> None:
    home = house()
    home.upstream.is_down = True
    with pytest.raises(AccessError) as refused:
        await home.issuer.identify(home.upstream.token())
    assert refused.value.code is ErrorCode.SERVICE_UNAVAILABLE
    home.upstream.is_down = False
    assert (await home.issuer.identify(home.upstream.token())).subject == "u-1"
