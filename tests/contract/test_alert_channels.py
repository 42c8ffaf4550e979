"""Alerts leave through SNS, or a webhook that cannot be turned inwards.

Keeps C61, C71.
"""

import hmac
import ssl

import boto3
import pytest

from tests.contract.receiver import Receiver, leading_to, receiver, tls
from tests.ministack import free_port
from tests.stores import NOON_S, REGION, HandClock, aws_client
from tollgate.aws.sigv4 import Credentials, Signer
from tollgate.core.secret import SecretReference
from tollgate.core.webhooks import DeliveryFailed
from tollgate.http1.egress import Egress
from tollgate.stores.aws.secrets import AwsSecretStore
from tollgate.stores.money.alert_channels import AlertWebhook, SnsTopic

__all__ = ["receiver", "tls"]


@pytest.fixture
def secrets() -> AwsSecretStore:
    return AwsSecretStore(None, {"HOOK_API_KEY": "s3cret"}.get, HandClock())


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
        AlertWebhook(
            url, SecretReference(env="HOOK_API_KEY"), secrets, clock=HandClock(), egress=Egress()
        )


@pytest.mark.parametrize(
    "addresses",
    [("127.0.0.1",), ("10.0.0.1",), ("169.254.169.254",), ("::1",), ("8.8.8.8", "192.168.0.1"), ()],
)
async def test_c71_a_webhook_never_reaches_a_private_address(
    addresses: tuple[str, ...], secrets: AwsSecretStore
) -> None:
    hook = AlertWebhook(
        "https://hooks.example/x",
        SecretReference(env="HOOK_API_KEY"),
        secrets,
        clock=HandClock(),
        egress=leading_to(*addresses),
    )

    with pytest.raises(DeliveryFailed, match="ForbiddenUrl"):
        await hook.send(b"{}")


@pytest.fixture
def hook(
    receiver: Receiver, tls: tuple[ssl.SSLContext, ssl.SSLContext], secrets: AwsSecretStore
) -> AlertWebhook:
    return AlertWebhook(
        f"https://hooks.example:{receiver.port}/budgets?team=a",
        SecretReference(env="HOOK_API_KEY"),
        secrets,
        clock=HandClock(),
        egress=leading_to("127.0.0.1", tls=tls[1]),
    )


def verified(headers: dict[str, str], body: bytes, secret: str, now_s: float) -> bool:
    """Verify a webhook as docs/ledger.md describes it."""
    signature = dict(part.split("=", 1) for part in headers["x-tollgate-signature"].split(","))
    signed = signature["t"].encode() + b"." + body
    expected = hmac.new(secret.encode(), signed, "sha256").hexdigest()
    fresh = abs(now_s - int(signature["t"])) < 300
    return fresh and hmac.compare_digest(signature["v1"], expected)


async def test_c61_a_webhook_gets_the_raw_body_signed_with_its_time(
    hook: AlertWebhook, receiver: Receiver
) -> None:
    event = '{"id": "evt_1",  "data": {"spent": "é"}}'.encode()

    await hook.send(event)

    [(headers, body)] = receiver.received
    assert body == event
    assert headers["content-type"] == "application/json"
    assert verified(headers, body, "s3cret", NOON_S)
    assert not verified(headers, body, "another", NOON_S)
    assert not verified(headers, body + b" ", "s3cret", NOON_S)
    assert not verified(headers, body, "s3cret", NOON_S + 300)
    later = headers | {
        "x-tollgate-signature": headers["x-tollgate-signature"].replace(
            f"t={int(NOON_S)}", f"t={int(NOON_S) + 300}"
        )
    }
    assert not verified(later, body, "s3cret", NOON_S + 300)


@pytest.mark.parametrize("status", [302, 400, 500])
async def test_c61_a_webhook_that_does_not_say_2xx_has_not_taken_it(
    hook: AlertWebhook, receiver: Receiver, status: int
) -> None:
    receiver.status = status
    with pytest.raises(DeliveryFailed, match=str(status)):
        await hook.send(b"{}")
    assert len(receiver.received) == 1, "a redirect is not followed, nothing is sent twice"


async def test_c61_a_webhook_whose_secret_cannot_be_read_is_not_sent_unsigned(
    receiver: Receiver, tls: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    away = aws_client(f"http://127.0.0.1:{free_port()}", "secretsmanager")
    hook = AlertWebhook(
        f"https://hooks.example:{receiver.port}/",
        SecretReference(secret="hook"),
        AwsSecretStore(away, {}.get, HandClock()),
        clock=HandClock(),
        egress=leading_to("127.0.0.1", tls=tls[1]),
    )
    with pytest.raises(DeliveryFailed, match="secret"):
        await hook.send(b"{}")
    await away.close()
    assert receiver.received == []


async def test_a_webhook_without_its_secret_sends_nothing(secrets: AwsSecretStore) -> None:
    hook = AlertWebhook(
        "https://hooks.example/x",
        SecretReference(env="OTHER"),
        secrets,
        clock=HandClock(),
        egress=Egress(),
    )

    with pytest.raises(DeliveryFailed, match="OTHER"):
        await hook.send(b"{}")
