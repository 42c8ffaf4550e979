"""Provider secrets: the environment first, then Secrets Manager (moto's), cached five minutes.

Keeps C44.
"""

import logging
import os
from collections.abc import AsyncIterator, Mapping

import pytest

from tests.ministack import free_port
from tests.stores import HandClock, aws_client
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsJson, AwsReply
from tollgate.aws.failures import StoreRejected, StoreUnavailable
from tollgate.core.errors import ErrorCode, LedgerError
from tollgate.core.secret import CredentialPlace, KeyVariables, SecretReference
from tollgate.stores.aws.secrets import AwsSecretStore


@pytest.fixture
async def client(moto_url: str) -> AsyncIterator[AwsJson]:
    client = aws_client(moto_url, "secretsmanager")
    yield client
    await client.close()


def store(client: AwsJson, clock: HandClock | None = None, **environment: str) -> AwsSecretStore:
    return AwsSecretStore(client, environment.get, clock or HandClock())


async def created(client: AwsJson, value: str) -> str:
    name = f"tollgate/{os.urandom(6).hex()}"
    await client.call(
        "CreateSecret",
        {"Name": name, "SecretString": value, "ClientRequestToken": os.urandom(16).hex()},
    )
    return name


async def test_an_environment_variable_is_asked_first(client: AwsJson) -> None:
    name = await created(client, "from-aws")
    both = SecretReference(env="OPENAI_API_KEY", secret=name)

    assert await store(client, OPENAI_API_KEY="from-env").read(both) == "from-env"
    assert await store(client).read(both) == "from-aws"
    assert await store(client, OPENAI_API_KEY="").read(both) == "from-aws"


async def test_a_secret_that_is_not_set_is_none(client: AwsJson) -> None:
    assert await store(client).read(SecretReference(env="MISSING_API_KEY")) is None
    assert await store(client).read(SecretReference(secret="tollgate/missing")) is None
    assert await store(client).read(SecretReference()) is None


async def test_a_secret_is_read_again_after_five_minutes_and_never_logged(
    client: AwsJson, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    name, clock = await created(client, "first-value"), HandClock()
    secrets = store(client, clock)
    reference = SecretReference(secret=name)

    assert await secrets.read(reference) == "first-value"
    await client.call(
        "PutSecretValue",
        {
            "SecretId": name,
            "SecretString": "second-value",
            "ClientRequestToken": os.urandom(16).hex(),
        },
    )
    clock.now += 299
    assert await secrets.read(reference) == "first-value"
    clock.now += 1
    assert await secrets.read(reference) == "second-value"
    assert "-value" not in caplog.text


async def test_a_store_that_cannot_be_reached_refuses() -> None:
    client = aws_client(f"http://127.0.0.1:{free_port()}", "secretsmanager")
    with pytest.raises(LedgerError) as raised:
        await store(client).read(SecretReference(secret="any"))
    await client.close()

    assert raised.value.code is ErrorCode.SERVICE_UNAVAILABLE


@pytest.mark.parametrize(
    "name", ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "TOLLGATE_API_KEY", "DATABASE_URL"]
)
async def test_c93_a_variable_that_is_no_providers_key_is_not_read(name: str) -> None:
    def read_nothing(variable: str) -> str | None:
        pytest.fail(f"{variable} was read")

    secrets = AwsSecretStore(None, read_nothing, HandClock())
    assert await secrets.read(SecretReference(env=name)) is None


async def test_c93_a_deployment_adds_variables_but_none_of_the_platform() -> None:
    environment = {"HF_TOKEN": "hf", "AWS_SESSION_TOKEN": "aws"}
    variables = KeyVariables(("*_TOKEN",))
    secrets = AwsSecretStore(None, environment.get, HandClock(), variables=variables)
    assert await secrets.read(SecretReference(env="HF_TOKEN")) == "hf"
    assert await secrets.read(SecretReference(env="AWS_SESSION_TOKEN")) is None


@pytest.mark.parametrize(
    ("reachable", "prefers_secrets", "place"),
    [
        (False, False, CredentialPlace(variables=("ONE_API_KEY",))),
        (True, False, CredentialPlace(variables=("ONE_API_KEY",), secret="tollgate/one")),
        (True, True, CredentialPlace(secret="tollgate/one")),
    ],
)
async def test_c44_a_key_is_wanted_only_where_this_process_looks_for_it(
    reachable: bool, prefers_secrets: bool, place: CredentialPlace
) -> None:
    client = Refusing(StoreRejected("ResourceNotFoundException", "")) if reachable else None
    secrets = AwsSecretStore(client, {}.get, HandClock(), prefers_secrets=prefers_secrets)
    assert secrets.place(SecretReference(env="ONE_API_KEY", secret="tollgate/one")) == place


class Refusing:
    """A client whose calls all fail with one error; `calls` counts them."""

    def __init__(self, error: StoreUnavailable) -> None:
        self.error = error
        self.calls = 0

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        self.calls += 1
        raise self.error


@pytest.mark.parametrize(
    "code",
    [
        "AccessDeniedException",
        "DecryptionFailure",
        "InvalidRequestException",
        "ResourceNotFoundException",
        "UnrecognizedClientException",
    ],
)
async def test_c44_a_rejected_read_is_an_absent_secret_that_is_logged_once(
    code: str, caplog: pytest.LogCaptureFixture
) -> None:
    client, clock = Refusing(StoreRejected(code, "User: arn:aws:sts::1:x is not")), HandClock()
    secrets = AwsSecretStore(client, {}.get, clock)
    for _ in range(3):
        assert await secrets.read(SecretReference(secret="tollgate/one")) is None
        clock.now += 61
    assert client.calls == 3
    assert [record.getMessage() for record in caplog.records] == [
        f"the secret tollgate/one cannot be used: {code}"
    ]
    # By these fields `make account-check` finds the line.
    fields = {"secret": "tollgate/one", "rejection": code}
    assert caplog.records[0].__dict__["fields"] == fields
    await secrets.read(SecretReference(secret="tollgate/two"))
    assert len(caplog.records) == 2


async def test_c44_a_secret_that_is_being_deleted_is_absent(client: AwsJson) -> None:
    name = await created(client, "value")
    await client.call("DeleteSecret", {"SecretId": name, "RecoveryWindowInDays": 7})
    assert await store(client).read(SecretReference(secret=name)) is None


async def test_an_absent_secret_is_asked_for_once_a_minute(client: AwsJson) -> None:
    clock, name = HandClock(), f"tollgate/{os.urandom(6).hex()}"
    secrets = store(client, clock)
    assert await secrets.read(SecretReference(secret=name)) is None
    await client.call(
        "CreateSecret",
        {"Name": name, "SecretString": "new", "ClientRequestToken": os.urandom(16).hex()},
    )
    clock.now += 59
    assert await secrets.read(SecretReference(secret=name)) is None
    clock.now += 1
    assert await secrets.read(SecretReference(secret=name)) == "new"


async def test_a_secrets_manager_that_fails_is_no_absent_secret() -> None:
    client = Refusing(StoreUnavailable("InternalServiceError", maybe_applied=True))
    secrets = AwsSecretStore(client, {}.get, HandClock())
    for _ in range(2):
        with pytest.raises(LedgerError):
            await secrets.read(SecretReference(secret="tollgate/one"))
    assert client.calls == 2
