"""A gateway on loopback that is well unless a test says otherwise, and Lambda's quota beside it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

from tests.clocks import STARTED_S

KEY = "sk-tg-synthetic-inference"
SHA = "a" * 64
EVENTS = [
    b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{"content":"one"}}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
    b"data: [DONE]\n\n",
]


@dataclass
class ScriptedGateway:
    """What it answers; tests change one thing and see that the doctor notices."""

    port: int = 0
    ready: int = 200
    sha: str = SHA
    now_s: float = STARTED_S
    key: str = KEY
    chat: int = 200
    events: list[bytes] = field(default_factory=lambda: list(EVENTS))
    content_length: bool = False
    concurrency: int = 1000
    closed_models: tuple[str, ...] = ()
    signed: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.url}/api/v1"


@contextmanager
def scripted_gateway() -> Iterator[ScriptedGateway]:
    """Serve until the block ends."""
    script = ScriptedGateway()

    class Handler(_Handler):
        gateway = script

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        script.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield script
        server.shutdown()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    gateway: ScriptedGateway

    def do_GET(self) -> None:
        match self.path:
            case "/api/v1/health/ready":
                self._json(self.gateway.ready, {"error": {"message": "The store is away."}})
            case "/api/v1/health/live":
                self._json(200, {"status": "ok", "catalog_sha": self.gateway.sha})
            case "/api/v1/models":
                known = self.headers["authorization"] == f"Bearer {self.gateway.key}"
                self._json(200 if known else 401, {"error": {"message": "No such key."}})
            case "/v1/models":
                self.gateway.signed.append(self.headers["authorization"])
                self._json(200, {"object": "list", "data": [{"id": "openai.gpt-5.5"}]})
            case "/unreadable/v1/models":
                self._json(200, {"models": []})
            case path if path.startswith("/foundation-model-availability/"):
                self._json(200, self._availability(path.rpartition("/")[2]))
            case path if path.endswith("/account-settings"):
                limit = {"ConcurrentExecutions": self.gateway.concurrency}
                self._json(200, {"AccountLimit": limit})
            case _:
                self._json(404, {})

    def _availability(self, model_id: str) -> dict[str, object]:
        is_open = unquote(model_id) not in self.gateway.closed_models
        return {
            "modelId": unquote(model_id),
            "agreementAvailability": {"status": "AVAILABLE" if is_open else "NOT_AVAILABLE"},
            "authorizationStatus": "AUTHORIZED",
            "entitlementAvailability": "AVAILABLE",
            "regionAvailability": "AVAILABLE",
        }

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert asked["stream"] is True
        if self.gateway.chat != 200:
            self._json(self.gateway.chat, {"error": {"message": "No provider answered."}})
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        if self.gateway.content_length:
            self.send_header("content-length", str(sum(map(len, self.gateway.events))))
        else:
            self.send_header("connection", "close")
        self.end_headers()
        for event in self.gateway.events:
            self.wfile.write(event)
        self.close_connection = True

    def _json(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def date_time_string(self, timestamp: float | None = None) -> str:
        return formatdate(self.gateway.now_s if timestamp is None else timestamp, usegmt=True)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing: pytest's output is not an access log."""
