"""Alerts leave through SNS, or a webhook that cannot be turned inwards.

Keeps C61, C71.
"""

import hmac
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import aiohttp
import boto3
import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.ministack import free_port
from tests.stores import NOON_S, REGION, HandClock, aws_client
from tollgate.aws.sigv4 import Credentials, Signer
from tollgate.core.secret import SecretReference
from tollgate.stores.aws.secrets import AwsSecretStore
from tollgate.stores.money.alert_channels import PublicResolver, SnsTopic, Webhook
from tollgate.stores.money.budgets import DeliveryFailed


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
        Webhook(url, SecretReference(env="HOOK_API_KEY"), secrets, clock=HandClock())


@pytest.mark.parametrize(
    "addresses",
    [("127.0.0.1",), ("10.0.0.1",), ("169.254.169.254",), ("::1",), ("8.8.8.8", "192.168.0.1"), ()],
)
async def test_c71_a_webhook_never_reaches_a_private_address(
    addresses: tuple[str, ...], secrets: AwsSecretStore
) -> None:
    hook = Webhook(
        "https://hooks.example/x",
        SecretReference(env="HOOK_API_KEY"),
        secrets,
        clock=HandClock(),
        connector=lambda: aiohttp.TCPConnector(resolver=PublicResolver(Resolves(*addresses))),
    )

    with pytest.raises(DeliveryFailed):
        await hook.send(b"{}")
    with pytest.raises(OSError, match="no public address"):
        await PublicResolver(Resolves(*addresses)).resolve("hooks.example")


@dataclass
class Receiver:
    """Somebody's server, over TLS, that keeps what it gets; `status` is what it answers."""

    port: int = 0
    status: int = 204
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    async def take(self, request: web.BaseRequest) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.received.append((headers, await request.read()))
        return web.Response(status=self.status, headers={"location": "https://elsewhere.example/"})


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The two ends of TLS to `hooks.example`, by a certificate that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hooks.example")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("hooks.example")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(Encoding.PEM)
    path = tmp_path_factory.mktemp("tls") / "pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    return server, ssl.create_default_context(cadata=pem.decode())


@pytest.fixture
async def receiver(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> AsyncIterator[Receiver]:
    it = Receiver()
    runner = web.ServerRunner(web.Server(it.take))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls[0])
    await site.start()
    it.port = runner.addresses[0][1]
    yield it
    await runner.cleanup()


@pytest.fixture
def hook(
    receiver: Receiver, tls: tuple[ssl.SSLContext, ssl.SSLContext], secrets: AwsSecretStore
) -> Webhook:
    return Webhook(
        f"https://hooks.example:{receiver.port}/budgets?team=a",
        SecretReference(env="HOOK_API_KEY"),
        secrets,
        clock=HandClock(),
        connector=lambda: aiohttp.TCPConnector(resolver=Resolves("127.0.0.1"), ssl=tls[1]),
    )


def verified(headers: dict[str, str], body: bytes, secret: str, now_s: float) -> bool:
    """Verify a webhook as docs/ledger.md describes it."""
    signature = dict(part.split("=", 1) for part in headers["x-tollgate-signature"].split(","))
    signed = signature["t"].encode() + b"." + body
    expected = hmac.new(secret.encode(), signed, "sha256").hexdigest()
    fresh = abs(now_s - int(signature["t"])) < 300
    return fresh and hmac.compare_digest(signature["v1"], expected)


async def test_c61_a_webhook_gets_the_raw_body_signed_with_its_time(
    hook: Webhook, receiver: Receiver
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
    hook: Webhook, receiver: Receiver, status: int
) -> None:
    receiver.status = status
    with pytest.raises(DeliveryFailed, match=str(status)):
        await hook.send(b"{}")
    assert len(receiver.received) == 1, "a redirect is not followed, nothing is sent twice"


async def test_c61_a_webhook_whose_secret_cannot_be_read_is_not_sent_unsigned(
    receiver: Receiver, tls: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    away = aws_client(f"http://127.0.0.1:{free_port()}", "secretsmanager")
    hook = Webhook(
        f"https://hooks.example:{receiver.port}/",
        SecretReference(secret="hook"),
        AwsSecretStore(away, {}.get, HandClock()),
        clock=HandClock(),
        connector=lambda: aiohttp.TCPConnector(resolver=Resolves("127.0.0.1"), ssl=tls[1]),
    )
    with pytest.raises(DeliveryFailed, match="secret"):
        await hook.send(b"{}")
    await away.close()
    assert receiver.received == []


async def test_a_webhook_without_its_secret_sends_nothing(secrets: AwsSecretStore) -> None:
    hook = Webhook(
        "https://hooks.example/x", SecretReference(env="OTHER"), secrets, clock=HandClock()
    )

    with pytest.raises(DeliveryFailed, match="OTHER"):
        await hook.send(b"{}")
