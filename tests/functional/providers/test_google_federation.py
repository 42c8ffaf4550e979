"""Federated Google credentials, each kind over real sockets and without google-auth's own clients.

Keeps C44. Also run with nothing installed but what a function carries: see the Makefile.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import pytest
from typing_extensions import override

from tests.functional.providers.one_provider import KEY, OneProvider
from tests.functional.providers.test_google import Google, answered, token
from tests.upstream import FakeUpstream, Script
from tollgate.aws.sigv4 import Credentials
from tollgate.core.errors import ErrorCode, MissingCredentials, UpstreamError
from tollgate.core.response import GenerationResponse
from tollgate.core.secret import CredentialPlace
from tollgate.providers.transports.google_credentials import AwsRole, load_google_credentials

AUDIENCE = "//iam.googleapis.com/projects/7/locations/global/workloadIdentityPools/p/providers/q"
JWT = "urn:ietf:params:oauth:token-type:jwt"
AWS = "urn:ietf:params:aws:token-type:aws4_request"


@pytest.fixture
async def token_endpoint() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as server:
        yield server


class Federated(Google):
    """A row of Google Cloud that reads the environment's own credentials."""

    def __init__(self, provider: OneProvider, file: Path) -> None:
        super().__init__(provider, "unset")
        self._file = file

    def configure(self, configuration: str) -> None:
        self._file.write_text(configuration)

    @override
    async def answer(self, **fields: Any) -> GenerationResponse:
        return await super().answer(**({"key": None} | fields))

    @override
    async def failure(self, **fields: Any) -> UpstreamError:
        return await super().failure(**({"key": None} | fields))


@pytest.fixture
def google(provider: OneProvider, google_file: Path) -> Federated:
    return Federated(provider, google_file)


def federation(
    token_endpoint: FakeUpstream, source: object, *, subject: str = JWT, **more: Any
) -> str:
    """The configuration of a federation, as `gcloud iam workload-identity-pools` writes it."""
    return json.dumps(
        {
            "type": "external_account",
            "audience": AUDIENCE,
            "subject_token_type": subject,
            "token_url": f"{token_endpoint.url}/v1/token",
            "credential_source": source,
            **more,
        }
    )


def exchanged(value: str) -> Script:
    body = {
        "access_token": value,
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "token_type": "Bearer",
        "expires_in": 3600,
    }
    return Script.json(200, body)


def subject_token(form: bytes) -> str:
    (sent,) = parse_qs(form.decode())["subject_token"]
    return sent


@pytest.fixture
def projected(tmp_path: Path) -> str:
    """The path of a token that a platform writes for a pod."""
    file = tmp_path / "projected"
    file.write_text("jwt-of-the-pod")
    return str(file)


async def test_a_token_from_a_file_is_exchanged(
    projected: str, upstream: FakeUpstream, token_endpoint: FakeUpstream, google: Federated
) -> None:
    google.configure(federation(token_endpoint, {"file": projected}))
    token_endpoint.enqueue(exchanged("ya29.file"))
    upstream.enqueue(answered())
    await google.answer()
    (asked,) = token_endpoint.received
    assert asked.path == "/v1/token"
    assert subject_token(asked.body) == "jwt-of-the-pod"
    assert upstream.received[0].headers["authorization"] == "Bearer ya29.file"


async def test_a_token_from_a_url_is_exchanged(
    upstream: FakeUpstream, token_endpoint: FakeUpstream, google: Federated
) -> None:
    source = {
        "url": f"{token_endpoint.url}/identity?audience=x",
        "headers": {"metadata": "True"},
        "format": {"type": "json", "subject_token_field_name": "access_token"},
    }
    google.configure(federation(token_endpoint, source))
    token_endpoint.enqueue(
        Script.json(200, {"access_token": "jwt-of-azure"}), exchanged("ya29.url")
    )
    upstream.enqueue(answered())
    await google.answer()
    asked, exchange = token_endpoint.received
    assert (asked.method, asked.path) == ("GET", "/identity?audience=x")
    assert asked.headers["metadata"] == "True"
    assert subject_token(exchange.body) == "jwt-of-azure"
    assert upstream.received[0].headers["authorization"] == "Bearer ya29.url"


async def test_the_aws_identity_of_the_gateway_is_exchanged_for_an_impersonated_account(
    upstream: FakeUpstream, token_endpoint: FakeUpstream, google: Federated
) -> None:
    source = {
        "environment_id": "aws1",
        "region_url": "http://169.254.169.254/latest/meta-data/placement/availability-zone",
        "url": "http://169.254.169.254/latest/meta-data/iam/security-credentials",
        "regional_cred_verification_url": "https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15",
    }
    account = f"{token_endpoint.url}/v1/projects/-/serviceAccounts/a@b.example:generateAccessToken"
    google.configure(
        federation(token_endpoint, source, subject=AWS, service_account_impersonation_url=account)
    )
    granted = {"accessToken": "ya29.account", "expireTime": "2099-01-01T00:00:00Z"}
    token_endpoint.enqueue(exchanged("ya29.aws"), Script.json(200, granted))
    upstream.enqueue(answered())
    await google.answer()
    exchange, impersonation = token_endpoint.received
    signed = json.loads(unquote(subject_token(exchange.body)))
    assert signed["url"].startswith("https://sts.eu-west-1.amazonaws.com?Action=GetCallerIdentity")
    headers = {header["key"].lower(): header["value"] for header in signed["headers"]}
    assert "Credential=AKID/" in headers["authorization"]
    assert headers["x-amz-security-token"] == "token"
    assert impersonation.headers["authorization"] == "Bearer ya29.aws"
    assert upstream.received[0].headers["authorization"] == "Bearer ya29.account"


async def test_a_gateway_without_an_aws_identity_says_what_to_set(
    token_endpoint: FakeUpstream, google: Federated, provider: OneProvider
) -> None:
    provider.credentials = None
    google.configure(federation(token_endpoint, {"environment_id": "aws1"}, subject=AWS))
    error = await google.failure()
    assert isinstance(error, MissingCredentials)
    assert "AWS_ACCESS_KEY_ID" in error.message
    assert token_endpoint.received == []


async def test_a_user_of_a_workforce_pool_refreshes(
    upstream: FakeUpstream, token_endpoint: FakeUpstream, google: Federated
) -> None:
    google.configure(
        json.dumps(
            {
                "type": "external_account_authorized_user",
                "audience": AUDIENCE,
                "refresh_token": "refresh",
                "token_url": f"{token_endpoint.url}/v1/oauthtoken",
                "client_id": "id",
                "client_secret": "secret",
            }
        )
    )
    token_endpoint.enqueue(token("ya29.workforce"))
    upstream.enqueue(answered())
    await google.answer()
    assert upstream.received[0].headers["authorization"] == "Bearer ya29.workforce"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ({"executable": {"command": "/bin/true"}}, "runs a program is refused"),
        ({"certificate": {"use_default_certificate_config": True}}, "client certificate"),
        ({}, "check the Google credentials of this environment"),
        (["no", "object"], "check the Google credentials of this environment"),
        ("words", "check the Google credentials of this environment"),
    ],
)
async def test_a_source_that_cannot_be_used_is_provider_auth_and_says_why(
    source: object, reason: str, token_endpoint: FakeUpstream, google: Federated
) -> None:
    google.configure(federation(token_endpoint, source))
    error = await google.failure()
    assert isinstance(error, MissingCredentials)
    assert reason in error.message
    assert token_endpoint.received == []


async def test_an_environment_without_credentials_is_provider_auth(google: Federated) -> None:
    error = await google.failure()
    assert isinstance(error, MissingCredentials)
    assert "set environment variable GOOGLE_APPLICATION_CREDENTIALS" in error.message
    # A chain without any key names each place that would help.
    assert error.places == (CredentialPlace(variables=("GOOGLE_APPLICATION_CREDENTIALS",)),)


def secret(**changes: str) -> str:
    """The configuration of a federation from AWS, as it may be a row's key."""
    plain = {
        "type": "external_account",
        "audience": AUDIENCE,
        "subject_token_type": AWS,
        "token_url": "https://sts.googleapis.com/v1/token",
        "service_account_impersonation_url": "https://iamcredentials.googleapis.com/v1/projects/-/"
        "serviceAccounts/a@b.example:generateAccessToken",
    }
    return json.dumps(plain | changes)


@pytest.mark.parametrize(
    "host",
    [
        "sts.googleapis.com",
        "sts.europe-west3.rep.googleapis.com",
        "sts-acme.p.googleapis.com",
        "europe-west3.sts.googleapis.com",
    ],
)
def test_a_secret_may_federate_the_role_of_the_gateway(host: str) -> None:
    role = AwsRole(lambda: Credentials("AKID", "shh"), "eu-west-1")
    configuration = json.loads(secret(token_url=f"https://{host}/v1/token"))
    load_google_credentials(configuration, role, is_secret=True)


@pytest.mark.parametrize(
    ("configuration", "reason"),
    [
        (secret(subject_token_type=JWT), "may federate only from AWS"),
        (secret(token_url="https://sts.googleapis.com.evil.example/v1/token"), "token_url"),
        (secret(token_url="https://sts.googleapis.com@evil.example/v1/token"), "token_url"),
        (secret(token_url="http://sts.googleapis.com/v1/token"), "token_url"),
        (secret(token_url="http://127.0.0.1:9001/2018-06-01"), "token_url"),
        (
            secret(token_url="https://storage.googleapis.com/upload/storage/v1/b/evil/o"),
            "token_url",
        ),
        (secret(token_url="https://evil.storage.googleapis.com/o"), "token_url"),
        (secret(token_url="https://sts.storage.googleapis.com/o"), "token_url"),
        (secret(token_url="https://evil_sts.googleapis.com/o"), "token_url"),
        (
            secret(service_account_impersonation_url="https://evil.storage.googleapis.com/o"),
            "impersonation_url",
        ),
        (secret(service_account_impersonation_url="https://evil.example/a"), "impersonation_url"),
    ],
)
async def test_a_secret_reads_nothing_of_this_machine_and_sends_no_identity_elsewhere(
    configuration: str, reason: str, google: Federated
) -> None:
    google.rotate(configuration)
    error = await google.failure(key=KEY)
    assert isinstance(error, MissingCredentials)
    assert reason in error.message
    assert "evil.example" not in error.message


@pytest.mark.parametrize(
    "configuration",
    [
        {"type": "gdch_service_account"},
        {"type": ["external_account"]},
        {"type": "external_account"},
        {"type": "external_account", "subject_token_type": AWS},
        {"type": "external_account_authorized_user"},
        {"type": "impersonated_service_account"},
        {"type": "impersonated_service_account", "source_credentials": {"type": "other"}},
        {"type": "authorized_user"},
        {"type": "service_account"},
    ],
)
async def test_a_configuration_that_lacks_something_is_provider_auth(
    configuration: dict[str, object], google: Federated
) -> None:
    google.configure(json.dumps(configuration))
    assert isinstance(await google.failure(), MissingCredentials)


async def test_an_exchange_that_is_refused_is_provider_auth_in_words_of_ours(
    token_endpoint: FakeUpstream, google: Federated, projected: str
) -> None:
    google.configure(federation(token_endpoint, {"file": projected}))
    refusal = {"error": "invalid_grant", "error_description": "jwt-of-the-pod is of nobody"}
    token_endpoint.enqueue(Script.json(400, refusal))
    error = await google.failure()
    assert error.code is ErrorCode.PROVIDER_AUTH
    assert "jwt-of-the-pod" not in error.message
