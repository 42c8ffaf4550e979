"""Provider secrets: the environment first, then Secrets Manager (moto's), cached five minutes."""

import logging
import os
from collections.abc import AsyncIterator

import pytest

from tests.ministack import free_port
from tests.stores import HandClock, aws_client
from tollgate.core.errors import ErrorCode, LedgerError
from tollgate.core.secret import SecretReference
from tollgate.stores.aws.aws_json import AwsJson
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
    assert await store(client).read(SecretReference(env="MISSING")) is None
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
