"""Lines a second, CPU a line and memory of batches that a server runs itself, by their size.

`python -m bench.batches [COUNT …]` prints one row for each count. The upstream, the store and the
client are separate processes, and are not counted.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.request import Request, urlopen

from bench.children import Child, child

COUNTS: Final = (1, 1_000, 50_000)
_CHAT: Final = "/v1/chat/completions"
_POLL_S: Final = 0.25
_ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})


class Client:
    """A caller of the server."""

    def __init__(self, server: Child) -> None:
        self._base = f"http://127.0.0.1:{server.port}/v1"
        self._key = str(server.facts["key"])

    def send(self, path: str, body: bytes | None = None, media: str = "application/json") -> Any:
        """Return the JSON reply to a POST, or to a GET without a body."""
        headers = {"authorization": f"Bearer {self._key}", "content-type": media}
        with urlopen(Request(f"{self._base}{path}", body, headers), timeout=600) as reply:
            return json.load(reply)

    def upload(self, content: bytes) -> str:
        """Upload a file of lines and return its id."""
        mark = "bench-5f0c"
        purpose = f'--{mark}\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        head = 'content-disposition: form-data; name="file"; filename="lines.jsonl"'
        file = f"--{mark}\r\n{head}\r\ncontent-type: application/jsonl\r\n\r\n"
        body = purpose.encode() + file.encode() + content + f"\r\n--{mark}--\r\n".encode()
        reply = self.send("/files", body, f"multipart/form-data; boundary={mark}")
        return str(reply["id"])


def make_lines(count: int) -> bytes:
    """Return a file of this many short chat requests."""
    message = {"role": "user", "content": "Say hello."}
    body = {"model": "sse/short", "max_tokens": 20, "messages": [message]}
    lines = (
        {"custom_id": f"n{number}", "method": "POST", "url": _CHAT, "body": body}
        for number in range(count)
    )
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def run_batch(server: Child, count: int) -> str:
    """Run a batch and return its row."""
    client = Client(server)
    file_id = client.upload(make_lines(count))
    body = {"input_file_id": file_id, "endpoint": _CHAT, "completion_window": "24h"}
    before_s, cpu_s, memory = time.monotonic(), server.cpu_s(), [server.resident_mb()]
    batch = client.send("/batches", json.dumps(body).encode())
    while batch["status"] not in _ENDED:
        time.sleep(_POLL_S)
        memory.append(server.resident_mb())
        batch = client.send(f"/batches/{batch['id']}")
    took_s, spent_s = time.monotonic() - before_s, server.cpu_s() - cpu_s
    if batch["request_counts"]["completed"] != count:
        raise SystemExit(f"not all lines were answered: {batch}")
    return (
        f"{count:>8,} lines  {count / took_s:>7.1f} lines/s  {spent_s / count * 1000:>8.2f} ms/line"
        f"  {memory[0]:>5.0f} → {max(memory):>5.0f} MB"
    )


def run_batches(counts: tuple[int, ...]) -> Iterator[str]:
    """Yield a row for each count; every batch gets a new server, so that memory starts anew."""
    for count in counts:
        with (
            TemporaryDirectory() as folder,
            child("bench.upstream", measured=False) as upstream,
            child("bench.gateways.dynamodb", measured=False) as store,
        ):
            os.environ |= {"BENCH_API_KEY": "bench", "TOLLGATE_OBJECTS_FOLDER": folder}
            url = f"http://127.0.0.1:{store.port}"
            with child("bench.gateways.served", str(upstream.port), url) as server:
                yield run_batch(server, count)


if __name__ == "__main__":
    for row in run_batches(tuple(map(int, sys.argv[1:])) or COUNTS):
        print(row, flush=True)
