"""Recording of a 100-column terminal session in which finance queries `tollgate dev`.

    python -m bench.finance > docs/finance.txt

Servers whose clocks are late first fill a store with traffic of last month and this month. Each
command then runs in a pseudo-terminal against a server on this store with the right clock.
"""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from time import monotonic, sleep

import httpx2
from tests.local_server import ROOT, TOLLGATE, LocalServer, environment, local_server
from typing_extensions import override

_COLUMNS = 100
_PATIENCE_S = 60
# Sizes of prompts, in words.
_TOKENS = 4_000
_DEAR_TOKENS = 61_000
# This script makes a server's clock late. Replacing `time.time` suffices, because the product reads
# the time in `tollgate.core.clock` only.
_LATE = """\
#!{python}
import sys, time
real = time.time
time.time = lambda: real() - {late_s}
from tollgate.cli.main import main
main(prog_name="tollgate")
"""
_ROUTING = """\
version: 1
providers:
  acme:
    name: Acme
    codec: openai_chat
    transport: http_sse
    base_url: "http://127.0.0.1:{port}/v1"
    private: true
models:
  acme/thinker:
    name: Thinker
    context: 200000
    max_output: 64000
    supports: [tools, reasoning, prompt_cache]
    endpoints:
      - provider: acme
        upstream: thinker
        price: {{ input: 3, output: 15, cache_read: 0.3, source: a recording, checked: 2026-11-28 }}
"""


class _Provider(BaseHTTPRequestHandler):
    """A provider that reports as many output tokens as the prompt asks for, half as reasoning."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        output = int(str(body["messages"][-1]["content"]).rpartition(" ")[2])
        usage = {
            "prompt_tokens": _DEAR_TOKENS if output > _TOKENS else _TOKENS,
            "completion_tokens": output,
            "total_tokens": 0,
            "prompt_tokens_details": {"cached_tokens": 40_000 if output > _TOKENS else 1_000},
            "completion_tokens_details": {"reasoning_tokens": output // 2},
        }
        chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "t"}
        delta = {"index": 0, "delta": {"role": "assistant", "content": "Done."}}
        events = [
            chunk | {"choices": [delta | {"finish_reason": "stop"}]},
            chunk | {"choices": [], "usage": usage},
        ]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in (*map(json.dumps, events), "[DONE]"):
            self.wfile.write(f"data: {event}\n\n".encode())

    @override
    def log_message(self, *_: object) -> None:
        """Log nothing."""


def main() -> None:
    provider = ThreadingHTTPServer(("127.0.0.1", 0), _Provider)
    Thread(target=provider.serve_forever, daemon=True).start()
    with TemporaryDirectory() as name:
        folder = Path(name)
        routing = folder / "routing.yaml"
        routing.write_text(_ROUTING.format(port=provider.server_port))
        first = datetime.now(UTC).replace(day=1)
        last_month = datetime.now(UTC) - first + timedelta(days=2)
        secrets: dict[str, str] = {}
        for late in (last_month, timedelta(days=9), timedelta(days=2)):
            with _server(folder, routing, late) as gateway:
                secrets = secrets or _make_keys(gateway)
                _make_traffic(gateway, secrets)
                gateway.interrupt()
        with _server(folder, routing, timedelta()) as gateway:
            dear = _make_traffic(gateway, secrets, dear=15_600)
            _wait_for_closed_days(gateway, last_month)
            for command in _questions(gateway, folder, dear):
                print(_on_terminal(gateway, command, folder))


def _server(folder: Path, routing: Path, late: timedelta) -> AbstractContextManager[LocalServer]:
    """Start a server on the folder's store with a clock that is late."""
    script = folder / "tollgate"
    text = _LATE.format(python=sys.executable, late_s=int(late.total_seconds()))
    script.write_text(text)
    script.chmod(0o700)
    return local_server(folder / "state", routing=routing, tollgate=script)


def _api(gateway: LocalServer, secret: str) -> httpx2.Client:
    bearer = {"authorization": f"Bearer {secret}"}
    return httpx2.Client(base_url=gateway.base_url, headers=bearer, timeout=_PATIENCE_S)


def _make_keys(gateway: LocalServer) -> dict[str, str]:
    """Create three teams with a key each; return the keys' secrets by team."""
    secrets = {}
    with _api(gateway, gateway.management_key) as api:
        for team in ("search", "support", "research"):
            api.post("teams", json={"id": team, "display_name": team.title()}).raise_for_status()
            body = {"name": f"{team} agent", "team_id": team, "labels": {"environment": "live"}}
            secrets[team] = api.post("keys", json=body).raise_for_status().json()["key"]
    return secrets


def _make_traffic(gateway: LocalServer, secrets: dict[str, str], dear: int = 0) -> str:
    """Send some requests for each team; return the generation id of the last one."""
    generation = ""
    outputs = [("search", 400), ("search", 900), ("support", 300), ("research", 2_500)]
    # `generations show` compares a bill only if its key had at least ten earlier ones that day.
    today = [*outputs * 6, ("search", dear)] if dear else outputs * 3
    for team, output in today:
        # A prompt must be long, because its bytes limit how many tokens are billed.
        words = "word " * (_DEAR_TOKENS if output == dear else _TOKENS)
        message = {"role": "user", "content": f"{words}{output}"}
        body = {"model": "acme/thinker", "messages": [message]}
        with _api(gateway, secrets[team]) as api:
            answer = api.post("chat/completions", json=body).raise_for_status()
        generation = answer.headers["x-generation-id"]
    return generation


def _wait_for_closed_days(gateway: LocalServer, since: timedelta) -> None:
    """Wait until the server has closed the days since the first traffic."""
    start, give_up_s = datetime.now(UTC) - since, monotonic() + _PATIENCE_S
    with _api(gateway, gateway.management_key) as api:
        while True:
            activity = api.get("activity", params={"since": f"{start:%Y-%m-%d}T00:00:00Z"}).json()
            if len(activity.get("closed_days", ())) >= since.days - 1:
                return
            assert monotonic() < give_up_s, activity
            sleep(1)


def _questions(gateway: LocalServer, folder: Path, dear: str) -> Iterator[Sequence[str]]:
    """Yield the commands, and write the files that they read."""
    today = datetime.now(UTC)
    day = (today - timedelta(days=2)).replace(hour=0, minute=0, second=0, microsecond=0)
    result = {
        "object": "organization.costs.result",
        "amount": {"value": 0.30, "currency": "usd"},
        "line_item": "thinker-2026-11-01, output",
    }
    bucket = {"start_time": day.timestamp(), "end_time": day.timestamp() + 86_400}
    page = {"data": [bucket | {"results": [result]}], "has_more": False}
    (folder / "invoice.json").write_text(json.dumps(page))
    yield "generations", "ls", "--limit", "5"
    yield "generations", "show", dear
    yield "spend", "--month", "last", "--by", "team"
    yield ("spend",)
    yield "credits", "refund", dear, "--note", "its answer was only an error text"
    yield "credits", "ledger"
    yield "generations", "show", dear
    yield "reconcile", "invoice.json", "--provider", "acme", "--routing", "routing.yaml"
    yield "statement", "--month", "last"
    yield "statement", "--month", "last", "--csv"
    yield "statement", "--month", "last", "--pdf", "statement.pdf"


def _on_terminal(gateway: LocalServer, command: Sequence[str], folder: Path) -> str:
    """Run a command; return its line and the text that a terminal shows, without colors."""
    reader, terminal = pty.openpty()
    reached = {"TOLLGATE_URL": gateway.base_url, "TOLLGATE_KEY": gateway.management_key}
    shown = {"TERM": "xterm", "COLUMNS": str(_COLUMNS), "PYTHONPATH": f"{ROOT / 'functions'}"}
    process = subprocess.Popen(
        [TOLLGATE, *command],
        cwd=folder,
        env={**environment(), **reached, **shown},
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    text = ""
    with os.fdopen(reader, "rb", buffering=0) as screen:
        # Reading raises OSError after the program has ended.
        try:
            while part := screen.read(65_536):
                text += part.decode()
        except OSError:
            process.wait(_PATIENCE_S)
    # Progress lines that the command erased are not part of the recording.
    plain = re.sub(r"\r\x1b\[K[^\r\n]*(?=\r\x1b\[K)", "", text)
    plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", plain).replace("\r\n", "\n").replace("\r", "")
    return f"$ tollgate {' '.join(command)}\n{plain}"


if __name__ == "__main__":
    main()
