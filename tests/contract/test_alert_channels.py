"""Alerts leave through SNS, or a webhook that cannot be turned inwards.

Keeps C61, C71.
"""

import socket

import aiohttp
import boto3
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from tests.stores import REGION, HandClock
from tollgate.core.secret import SecretReference
from tollgate.stores.alert_channels import PublicResolver, SnsTopic, Webhook
from tollgate.stores.budgets import DeliveryFailed
from tollgate.stores.secrets import AwsSecretStore
from tollgate.wire.sigv4 import Credentials, Signer


class Resolves(AbstractResolver):
    """Resolves every name to the same addresses."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=it, port=port, family=family, proto=0, flags=0)
            for it in self.addresses
        ]

    async def close(self) -> None:
        return


@pytest.fixture
def secrets() -> AwsSecretStore:
    return AwsSecretStore(None, {"HOOK": "s3cret"}.get, HandClock())


def aws(service: str, url: str) -> object:
    return boto3.client(
        service,
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )


async def test_c61_an_alert_is_published_to_sns(moto_url: str) -> None:
    sns, sqs = aws("sns", moto_url), aws("sqs", moto_url)
    topic = sns.create_topic(Name="alerts")["TopicArn"]  # type: ignore[attr-defined]
    queue = sqs.create_queue(QueueName="alerts")["QueueUrl"]  # type: ignore[attr-defined]
    sns.subscribe(  # type: ignore[attr-defined]
        TopicArn=topic,
        Protocol="sqs",
        Endpoint=f"arn:aws:sqs:{REGION}:123456789012:alerts",
        Attributes={"RawMessageDelivery": "true"},
    )
    signer = Signer("sns", REGION, lambda: Credentials("test", "test"), HandClock())

    await SnsTopic(topic, signer, moto_url).send(b'{"id": "evt_1", "data": {"a": "b&c=\xc3\xa9"}}')
    with pytest.raises(DeliveryFailed):
        await SnsTopic(topic + "x", signer, moto_url).send(b"{}")

    received = sqs.receive_message(QueueUrl=queue)["Messages"]  # type: ignore[attr-defined]
    assert [it["Body"] for it in received] == ['{"id": "evt_1", "data": {"a": "b&c=é"}}']


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example/x",
        "https://127.0.0.1/x",
        "https://[::1]/x",
        "https://user:pass@hooks.example/",
        "https:///x",
        "ftp://hooks.example",
    ],
)
def test_c71_a_webhook_is_https_and_a_name(url: str, secrets: AwsSecretStore) -> None:
    with pytest.raises(ValueError, match="webhook"):
        Webhook(url, SecretReference(env="HOOK"), secrets)


@pytest.mark.parametrize(
    "addresses",
    [("127.0.0.1",), ("10.0.0.1",), ("169.254.169.254",), ("::1",), ("8.8.8.8", "192.168.0.1"), ()],
)
async def test_c71_a_webhook_never_reaches_a_private_address(
    addresses: tuple[str, ...], secrets: AwsSecretStore
) -> None:
    hook = Webhook(
        "https://hooks.example/x",
        SecretReference(env="HOOK"),
        secrets,
        lambda: aiohttp.TCPConnector(resolver=PublicResolver(Resolves(*addresses))),
    )

    with pytest.raises(DeliveryFailed):
        await hook.send(b"{}")
    with pytest.raises(OSError, match="no public address"):
        await PublicResolver(Resolves(*addresses)).resolve("hooks.example")


async def test_a_webhook_without_its_secret_sends_nothing(secrets: AwsSecretStore) -> None:
    hook = Webhook("https://hooks.example/x", SecretReference(env="OTHER"), secrets)

    with pytest.raises(DeliveryFailed, match="OTHER"):
        await hook.send(b"{}")
