"""Somebody's server at `hooks.example`, over TLS, that gets events."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tollgate.http1.egress import Egress


def leading_to(*addresses: str, tls: ssl.SSLContext | None = None) -> Egress:
    """A guard for which every name has these addresses; with `tls`, loopback is let through."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    if tls is None:
        return Egress(resolve=resolve)
    return Egress(resolve=resolve, also_allowed=frozenset({"127.0.0.1"}), tls=lambda: tls)


@dataclass
class Receiver:
    """Somebody's server, over TLS, that keeps what it gets; `status` is what it answers."""

    port: int = 0
    status: int = 204
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    # Waited for before each answer, and the answer's body.
    release: asyncio.Event | None = None
    body: bytes = b""

    async def take(self, request: web.BaseRequest) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.received.append((headers, await request.read()))
        if self.release is not None:
            await self.release.wait()
        elsewhere = {"location": "https://elsewhere.example/"}
        return web.Response(status=self.status, headers=elsewhere, body=self.body)


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
