"""Providers and hosts that send more than anybody wants to buffer, and a gateway in front of them.

As a program, `python -m tests.hostile.hungry ATTACK SIZE`, it makes one attack with this many bytes
and prints its reply, its bill and by how much the process has grown.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace
from starlette.types import ASGIApp, Message

from tests.asgi import exchange
from tests.gateways import Always, House, house
from tests.hostile.endless import ATTACKS, CHAT, JSON, KB, MB, MODEL, URLS, Attack, pictured
from tollgate.aws.sigv4 import Credentials
from tollgate.core.buffer_budget import ProcessBuffers
from tollgate.core.clock import SystemClock
from tollgate.core.secret import CredentialPlace, SecretReference
from tollgate.http1.egress import Egress
from tollgate.ingress.formats import CHAT_COMPLETIONS
from tollgate.providers.transports.authorization import ProviderServices
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.tools.io.public_fetcher import PublicFetcher
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits
from tollgate.wiring.providers import CatalogProviders, Registry


class HungryServer:
    """Serves one attack on a loopback port; `sent` is how many bytes its sockets have taken."""

    def __init__(self, attack: Attack, size: int) -> None:
        self._attack = attack
        self._size = size
        self.sent = 0
        self.url = ""

    async def __aenter__(self) -> "HungryServer":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
            left = int(length or 0)
            while left:
                left -= len(await reader.readexactly(min(left, 64 * KB)))
            await self._answer(writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        attack, lead = self._attack, self._attack.lead
        pieces = max(1, (self._size - len(lead)) // len(attack.piece))
        coding = (
            f"content-length: {len(lead + attack.tail) + pieces * len(attack.piece)}"
            if attack.states_length
            else "transfer-encoding: chunked"
        )
        lines = (f"content-type: {attack.content_type}", *attack.head, coding)
        head = "\r\n".join((f"HTTP/1.1 {attack.status} x", *lines))
        writer.write(f"{head}\r\n\r\n".encode())
        whole: Callable[[bytes], bytes] = (
            (lambda octets: octets)
            if attack.states_length
            else (lambda octets: b"%x\r\n%b\r\n" % (len(octets), octets))
        )
        piece = whole(attack.piece)
        if lead:
            writer.write(whole(lead))
        for _ in range(pieces):
            writer.write(piece)
            await writer.drain()
            self.sent += len(piece)
        if attack.tail:
            writer.write(whole(attack.tail))
        if not attack.states_length:
            writer.write(b"0\r\n\r\n")
        await writer.drain()


class _Secrets:
    """A store with the same key for every provider."""

    async def read(self, reference: SecretReference) -> str | None:
        return "sk-secret"

    def place(self, reference: SecretReference) -> CredentialPlace:
        return CredentialPlace(variables=("NEAR_API_KEY",), secret="tollgate/near")


class WatchedBuffers(ProcessBuffers):
    """A budget that remembers its highest level."""

    peak = 0

    def take(self, workspace_id: str, size: int) -> None:
        super().take(workspace_id, size)
        self.peak = max(self.peak, self.size)


class Outcome(Struct, kw_only=True):
    """What became of an attack."""

    status: int
    code: str
    """The code of the error, or nothing."""
    received: int
    """Bytes of the reply to the caller."""
    sent: int
    cost_nano_usd: int
    outcome: str
    peak: int
    """Highest number of buffered bytes."""
    left: int
    """Bytes that are still buffered."""
    defects: list[str]


async def hungry_house(attack: Attack, url: str, buffers: ProcessBuffers, pool: HttpPool) -> House:
    """A gateway with sockets, whose one model is served by the attacker."""
    row = {**attack.row, "base_url": url}
    home = await house(
        providers={"near": row, "far": row},
        models={MODEL: dict(attack.model)},
        aliases={},
        routes={},
    )
    services = ProviderServices(
        pool=pool,
        secrets=_Secrets(),
        credentials=lambda: Credentials("AKID", "shh", "token"),
        aws_region="eu-west-1",
        google_file=None,
        clock=SystemClock(),
    )
    home.gateway = replace(
        home.gateway,
        providers=CatalogProviders(home.catalog, Registry(services)),
        media=PublicFetcher(Egress(also_allowed=frozenset({"127.0.0.1"}))),
        buffers=buffers,
    )
    return home


async def _ask(
    app: ASGIApp, secret: str, path: str, body: Mapping[str, Any]
) -> tuple[int, bytes, int]:
    """The status, the first and last bytes, and the size of a reply that is read and dropped."""
    headers = {"authorization": f"Bearer {secret}", "content-type": JSON}
    scope = exchange("POST", f"/api{path}".replace("/api/v1", "/v1"), headers=headers).scope
    waiting = [json.dumps(body).encode()]
    status, shown, size = 0, b"", 0

    async def receive() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await asyncio.Future()

    async def send(message: Message) -> None:
        nonlocal status, shown, size
        status = message.get("status", status)
        piece = message.get("body", b"")
        shown, size = (shown + piece)[-10 * KB :], size + len(piece)

    await app(scope, receive, send)
    return status, shown, size


async def attack_with(
    attack: Attack, size: int, request_bytes_max: int, *, others: int = 0
) -> Outcome:
    """Make one attack of this size on a gateway with this budget.

    `others` is what further requests of the same workspace buffer.
    """
    buffers, pool = WatchedBuffers(0, request_bytes_max=request_bytes_max), HttpPool()
    if others:
        buffers.take("acme", others)
    async with HungryServer(attack, size) as server:
        home = await hungry_house(attack, server.url, buffers, pool)
        asked = {"model": MODEL, **(CHAT if attack.path == CHAT_COMPLETIONS.path else {})}
        if attack.path == "/v1/responses":
            asked["input"] = "Hi"
        asked |= attack.body
        if attack.path == CHAT_COMPLETIONS.path and "image" in attack.model.get("input", ()):
            asked |= pictured(URLS, server.url)
        app = chat_app(home.front, Always(home.gateway), WebLimits())
        status, shown, received = await _ask(app, home.secret, attack.path, asked)
        await pool.close()
    records = [*home.stores.books.records.values()]
    code = shown.rpartition(b'"code":"')[2].partition(b'"')[0] if b'"code":"' in shown else b""
    return Outcome(
        status=status,
        code=code.decode(),
        received=received,
        sent=server.sent,
        cost_nano_usd=records[0].cost_nano_usd if records else 0,
        outcome=records[0].outcome if records else "",
        peak=buffers.peak,
        left=buffers.size - others,
        defects=[repr(error) for error, _ in home.journal.defects],
    )


def _peak_mb() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def main(name: str, size: str, budget: str = str(64 * MB)) -> None:
    """Make one attack and print what became of it."""
    attack = ATTACKS[name]
    asyncio.run(attack_with(ATTACKS["an error without an end"], MB, MB))
    before = _peak_mb()
    outcome = asyncio.run(attack_with(attack, int(size), int(budget)))
    print(json.dumps({"grown_mb": _peak_mb() - before, **asdict(outcome)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
