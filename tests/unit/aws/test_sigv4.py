"""Signatures are those of botocore, which is the reference client of the same vendor."""

import datetime as dt
from unittest.mock import patch
from urllib.parse import quote, urlencode

import pytest
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials
from hypothesis import given
from hypothesis import strategies as st

from tollgate.aws.sigv4 import Credentials, Signer

NOW_S = 1795228201.0
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


class FixedClock:
    """A clock that tests move."""

    def __init__(self, now_s: float = NOW_S) -> None:
        self.now = now_s

    def now_s(self) -> float:
        return self.now

    def monotonic_s(self) -> float:
        return self.now

    async def sleep(self, delay_s: float) -> None:
        self.now += delay_s


def signer(service: str, token: str | None = None, clock: FixedClock | None = None) -> Signer:
    credentials = Credentials("AKIDEXAMPLE", SECRET, token)
    return Signer(service, "eu-central-1", lambda: credentials, clock or FixedClock())


def botocore_signs(
    service: str,
    url: str,
    headers: dict[str, str],
    body: bytes,
    token: str | None,
    *,
    method: str = "POST",
) -> dict[str, str]:
    """What botocore would send, in lower-case names, with the clock stopped at NOW_S."""
    request = AWSRequest(method=method, url=url, headers=headers, data=body)
    now = dt.datetime.fromtimestamp(NOW_S, dt.UTC).replace(tzinfo=None)
    kind = S3SigV4Auth if service == "s3" else SigV4Auth
    auth = kind(BotocoreCredentials("AKIDEXAMPLE", SECRET, token), service, "eu-central-1")
    with patch("botocore.auth.get_current_datetime", return_value=now):
        auth.add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


BEDROCK = "https://bedrock-runtime.eu-central-1.amazonaws.com"


@pytest.mark.parametrize("token", [None, "IQoJb3JpZ2luX2VjEXAMPLE//"])
@pytest.mark.parametrize(
    ("service", "url"),
    [
        ("dynamodb", "https://dynamodb.eu-central-1.amazonaws.com/"),
        ("dynamodb", "https://dynamodb.eu-central-1.amazonaws.com"),
        ("dynamodb", "http://127.0.0.1:4566/"),
        ("dynamodb", "http://[::1]:4566/"),
        ("secretsmanager", "https://secretsmanager.eu-central-1.amazonaws.com:443/"),
        ("bedrock", f"{BEDROCK}/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse-stream"),
        ("bedrock", f"{BEDROCK}/model/anthropic.claude-3-haiku-20240307-v1:0/converse"),
        ("bedrock", f"{BEDROCK}/model/arn%3Aaws%3Abedrock%3A%3A1%3Aprofile%2Fp/converse"),
        ("sagemaker", "https://runtime.example.com/endpoints/a~b/invocations?b=2&a=1&a=0&flag"),
    ],
)
def test_a_signature_is_byte_for_byte_botocores(service: str, url: str, token: str | None) -> None:
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": "DynamoDB_20120810.UpdateItem",
        "X-Spaces": "  two   words ",
        "User-Agent": "tollgate",
    }
    body = b'{"TableName":"ledger"}'

    ours = signer(service, token).sign("POST", url, headers, body)
    theirs = botocore_signs(service, url, headers, body, token)

    assert ours["authorization"] == theirs["authorization"]
    assert ours["x-amz-date"] == theirs["x-amz-date"]
    assert ours.get("x-amz-security-token") == theirs.get("x-amz-security-token")


@given(
    path=st.text(alphabet="ab./%:~ é", max_size=12),
    body=st.binary(max_size=64),
    value=st.text(alphabet="a b\t=,;", min_size=1, max_size=10),
)
def test_any_path_body_and_header_signs_as_botocore_does(
    path: str, body: bytes, value: str
) -> None:
    url = f"{BEDROCK}/{path}"
    headers = {"X-Any": value}

    ours = signer("bedrock").sign("POST", url, headers, body)

    assert (
        ours["authorization"]
        == botocore_signs("bedrock", url, headers, body, None)["authorization"]
    )


BUCKET = "https://objects.s3.eu-central-1.amazonaws.com"
# Whole segments that other services' rules would resolve or merge are keys like any other to S3.
segments = st.text(min_size=1, max_size=12) | st.sampled_from(
    [".", "..", "", "a b", "é", "%2F", "~"]
)
keys = st.lists(segments, min_size=1, max_size=5).map("/".join).filter(bool)
queries = st.lists(
    st.tuples(st.sampled_from(["list-type", "prefix", "versionId", "X-a"]), st.text(max_size=8)),
    max_size=4,
)
bodies = st.binary(max_size=64) | st.sampled_from([b"", b"x" * 1_000_000])


@given(
    method=st.sampled_from(["GET", "PUT", "DELETE", "HEAD"]),
    key=keys,
    query=queries,
    body=bodies,
    token=st.none() | st.just("IQoJb3JpZ2luX2VjEXAMPLE//"),
)
def test_any_object_signs_as_botocore_does_for_s3(
    method: str, key: str, query: list[tuple[str, str]], body: bytes, token: str | None
) -> None:
    asked = "?" + urlencode(query, quote_via=quote, safe="~") if query else ""
    url = f"{BUCKET}/{quote(key.encode(errors='replace'), safe='/~')}{asked}"
    headers = {"x-amz-server-side-encryption": "AES256"} if method == "PUT" else {}

    ours = signer("s3", token).sign(method, url, headers, body)
    theirs = botocore_signs("s3", url, headers, body, token, method=method)

    assert ours["x-amz-content-sha256"] == theirs["x-amz-content-sha256"]
    assert ours["authorization"] == theirs["authorization"]


def test_the_headers_returned_are_all_that_must_be_sent() -> None:
    signed = signer("dynamodb", "token").sign(
        "POST", "http://127.0.0.1:4566/", {"X-Amz-Target": "T", "Authorization": "stale"}, b""
    )

    assert signed["host"] == "127.0.0.1:4566"
    assert signed["x-amz-target"] == "T"
    assert signed["x-amz-security-token"] == "token"
    assert signed["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261121/")
    assert signed["authorization"].count("x-amz-security-token") == 1


def test_rotated_credentials_and_a_new_day_are_signed_with_their_own_key() -> None:
    clock = FixedClock()
    current = [Credentials("AKID1", "secret-one")]
    rotating = Signer("dynamodb", "eu-central-1", lambda: current[0], clock)
    url = "https://dynamodb.eu-central-1.amazonaws.com/"

    first = rotating.sign("POST", url, {}, b"")["authorization"]
    current[0] = Credentials("AKID1", "secret-two")
    second = rotating.sign("POST", url, {}, b"")["authorization"]
    clock.now += 86_400
    third = rotating.sign("POST", url, {}, b"")["authorization"]
    fresh = Signer("dynamodb", "eu-central-1", lambda: current[0], clock)

    assert first != second
    assert third == fresh.sign("POST", url, {}, b"")["authorization"]


def test_a_secret_never_shows_in_the_repr_of_credentials() -> None:
    assert repr(Credentials("AKID", "secret", "token")) == "Credentials(access_key_id='AKID')"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "model/a", "model/b?x=1"]),
            st.sampled_from([{}, {"X-Amz-Target": "a"}, {"x-amz-target": "b", "Accept": "c  d"}]),
            st.binary(max_size=4),
            st.sampled_from([None, "first", "second"]),
            st.integers(0, 200_000),
        ),
        max_size=12,
    ),
    st.sampled_from(["bedrock", "s3"]),
)
def test_a_signer_signs_as_one_that_has_signed_nothing(
    calls: list[tuple[str, dict[str, str], bytes, str | None, int]], service: str
) -> None:
    token: list[str | None] = [None]
    clock = FixedClock()
    used = Signer(
        service, "eu-central-1", lambda: Credentials("AKIDEXAMPLE", SECRET, token[0]), clock
    )
    for path, headers, body, token[0], later_s in calls:
        clock.now = NOW_S + later_s
        fresh = signer(service, token[0], clock)
        url = f"{BEDROCK}/{path}"
        signed = used.sign("POST", url, headers, body)
        assert signed == fresh.sign("POST", url, headers, body)
        assert signed.get("x-amz-security-token") == token[0]
