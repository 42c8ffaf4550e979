"""Providers and hosts that send more than anybody wants to hold, and a gateway in front of them.

As a program, `python -m tests.hostile.hungry ATTACK SIZE`, it makes one attack with this many bytes
and prints its reply, its bill and by how much the process has grown.
"""

import asyncio
import json
import struct
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import asdict, replace
from starlette.types import ASGIApp, Message

from tests.asgi import exchange
from tests.gateways import Always, House, house
from tests.painters import BY_PICTURE, OPENAI, painter
from tests.unit.ingress.media_samples import PNG
from tests.unit.routing.catalogs import endpoint, model, provider
from tests.upstream.messages_events import block, delta, sse, start
from tollgate.aws.sigv4 import Credentials
from tollgate.core.clock import SystemClock
from tollgate.core.held_bytes import ProcessBytes
from tollgate.core.secret import CredentialPlace, SecretReference
from tollgate.http1.egress import Egress
from tollgate.ingress.formats import CHAT_COMPLETIONS, EMBEDDINGS, IMAGE_GENERATIONS, SPEECH
from tollgate.providers.transports.authorization import ProviderServices
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.tools.io.public_fetcher import PublicFetcher
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits
from tollgate.wiring.providers import CatalogProviders, Registry

MODEL: Final = "acme/hungry"
KB, MB = 1024, 1024 * 1024
URLS: Final = 16
EVENTS: Final = "text/event-stream"
JSON: Final = "application/json"
_CHAT: Final = {"messages": [{"role": "user", "content": "Hi"}]}
_CONTENT: Final = {"type": "image_url"}


def _delta(**content: Any) -> bytes:
    choice = {"index": 0, "delta": content, "finish_reason": None}
    chunk = {"id": "c1", "object": "chat.completion.chunk", "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def _log_probs(text: str) -> bytes:
    likely = {"token": "one", "logprob": -0.5, "bytes": [111, 110, 101]}
    entries = [{**likely, "top_logprobs": [likely] * 20}]
    choice = {"index": 0, "delta": {"content": text}, "logprobs": {"content": entries}}
    return b"data: " + json.dumps({"id": "c1", "choices": [choice]}).encode() + b"\n\n"


def _frame_of(length: int) -> bytes:
    """The beginning of an AWS event-stream message of this length."""
    lengths = struct.pack("!II", length, 0)
    return lengths + struct.pack("!I", zlib.crc32(lengths))


def _chat_model(**facts: Any) -> dict[str, Any]:
    return model(endpoint("near", "m-1"), max_output=10**7, context=10**8, **facts)


def _work_model(kind: str, **facts: Any) -> dict[str, Any]:
    return {**model(endpoint("near", "m-1"), **facts), "kind": kind}


class Attack(Struct, frozen=True, kw_only=True):
    """A request, and a reply that begins with `lead` and goes on with `piece` again and again."""

    piece: bytes
    lead: bytes = b""
    tail: bytes = b""
    """The end of a reply that comes so far."""
    head: tuple[str, ...] = ()
    """Further lines of the reply's head."""
    content_type: str = EVENTS
    status: int = 200
    states_length: bool = False
    """True if the reply states its length instead of being chunked."""
    path: str = CHAT_COMPLETIONS.path
    body: Mapping[str, Any] = {}
    model: Mapping[str, Any] = field(default_factory=_chat_model)
    row: Mapping[str, Any] = field(default_factory=provider)
    code: str = "answer_too_large"
    """The error code that the caller gets if its budget is below 8 MB; empty without an error."""
    is_billed: bool = True
    """True if the caller pays for a part."""


def _pictured(count: int, url: str) -> dict[str, Any]:
    parts = [{**_CONTENT, "image_url": {"url": f"{url}/{at}.png"}} for at in range(count)]
    return {"messages": [{"role": "user", "content": parts}]}


_END: Final = (
    b'data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)
_PICTURED: Final = Attack(
    lead=PNG,
    piece=b"\0" * 64 * KB,
    content_type="image/png",
    model=_chat_model(input=("text", "image")),
    row=provider(dialect={"fetches_urls": ()}),
    code="invalid_request",
    is_billed=False,
)
_VECTORS: Final = {
    "path": EMBEDDINGS.path,
    "body": {"input": ["a"] * 2_000},
    "model": _work_model("embedding", vectors={"dimensions": 65_536}, context=1_000_000),
    "row": provider(dialect={"embeddings": {"inputs_max": 2_048}}),
    "content_type": JSON,
}
ATTACKS: Final[Mapping[str, Attack]] = {
    "short texts": Attack(piece=_delta(content="word") * 200),
    "long texts": Attack(piece=_delta(content="x" * 500 * KB), tail=_END),
    "texts beyond Latin": Attack(piece=_delta(content="語" * 1_000) * 20),
    "a text in four choices": Attack(piece=_delta(content="word") * 200, body={"n": 4}),
    "arguments of a call": Attack(
        lead=_delta(
            tool_calls=[{"index": 0, "id": "c", "type": "function", "function": {"name": "f"}}]
        ),
        piece=_delta(tool_calls=[{"index": 0, "function": {"arguments": "x" * KB}}]) * 20,
        body={"tools": [{"type": "function", "function": {"name": "f"}}]},
        model=_chat_model(supports=("tools",)),
    ),
    "log probabilities": Attack(
        piece=_log_probs("one") * 20, body={"logprobs": True, "top_logprobs": 20}
    ),
    "text for a streamed response": Attack(
        piece=_delta(content="word") * 200, path="/v1/responses", body={"stream": True}
    ),
    "reports before any text": Attack(
        piece=b'data: {"id":"c1","choices":[],"usage":{"prompt_tokens":1}}\n\n' * 200,
        is_billed=False,
    ),
    "a signature without an end": Attack(
        lead=b"".join(map(sse, (start(), block(0, type="thinking", thinking="")))),
        piece=sse(delta(0, "signature_delta", signature="x" * 100 * KB)),
        row=provider(codec="anthropic"),
        is_billed=False,
    ),
    "an event without an end": Attack(piece=b"x" * 64 * KB, lead=b"data: ", is_billed=False),
    "a message of 1 GB": Attack(
        piece=b"x" * 64 * KB,
        lead=_frame_of(2**30),
        content_type="application/vnd.amazon.eventstream",
        row={"codec": "bedrock", "transport": "bedrock_runtime", "region": "eu-west-1"},
        code="provider_unavailable",
        is_billed=False,
    ),
    "a whole chunked answer": Attack(piece=b" " * 64 * KB, content_type=JSON, is_billed=False),
    "a whole answer with its length": Attack(
        piece=b" " * 64 * KB,
        content_type=JSON,
        states_length=True,
        is_billed=False,
    ),
    "a compressed answer": Attack(
        piece=zlib.compress(b"x" * MB),
        head=("content-encoding: gzip",),
        code="provider_unavailable",
        is_billed=False,
    ),
    "an error without an end": Attack(
        piece=b"x" * 64 * KB,
        status=500,
        content_type=JSON,
        code="provider_unavailable",
        is_billed=False,
    ),
    "vectors": Attack(lead=b'{"data":[', piece=b"0.123456789," * 6_000, **_VECTORS),
    "vectors with their length": Attack(
        lead=b'{"data":[', piece=b"0.123456789," * 6_000, states_length=True, **_VECTORS
    ),
    "pictures": Attack(
        lead=b'{"data":[{"b64_json":"',
        piece=b"A" * 64 * KB,
        content_type=JSON,
        path=IMAGE_GENERATIONS.path,
        body={"prompt": "a cat", "n": 4},
        model=painter(BY_PICTURE),
        row=provider(dialect={"images": OPENAI}),
    ),
    "pictures by URL": _PICTURED,
    "pictures by URL with their length": replace(_PICTURED, states_length=True),
    "speech": Attack(
        piece=b"\x7f" * 64 * KB,
        content_type="audio/mpeg",
        path=SPEECH.path,
        body={"input": "Hello", "voice": "alloy"},
        model=_work_model("speech"),
        code="",
    ),
}


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
            await reader.readexactly(int(length or 0))
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


class WatchedBytes(ProcessBytes):
    """A budget that remembers its highest level."""

    peak = 0

    def take(self, workspace_id: str, size: int) -> None:
        super().take(workspace_id, size)
        self.peak = max(self.peak, self.held)


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
    """Highest number of held bytes."""
    left: int
    """Bytes that are still held."""
    defects: list[str]


async def hungry_house(attack: Attack, url: str, held: ProcessBytes, pool: HttpPool) -> House:
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
        held_bytes=held,
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
    attack: Attack, size: int, request_bytes_max: int, *, others_hold: int = 0
) -> Outcome:
    """Make one attack of this size on a gateway with this budget.

    `others_hold` is what further requests of the same workspace hold.
    """
    held, pool = WatchedBytes(0, request_bytes_max=request_bytes_max), HttpPool()
    if others_hold:
        held.take("acme", others_hold)
    async with HungryServer(attack, size) as server:
        home = await hungry_house(attack, server.url, held, pool)
        asked = {"model": MODEL, **(_CHAT if attack.path == CHAT_COMPLETIONS.path else {})}
        if attack.path == "/v1/responses":
            asked["input"] = "Hi"
        asked |= attack.body
        if attack.path == CHAT_COMPLETIONS.path and "image" in attack.model.get("input", ()):
            asked |= _pictured(URLS, server.url)
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
        peak=held.peak,
        left=held.held - others_hold,
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
