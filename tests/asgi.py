"""Calls an ASGI application as a server does, without one."""

import asyncio
import json
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp

Message = MutableMapping[str, Any]


@dataclass
class Exchange:
    """One request and what came back; `leave` ends the client's connection."""

    scope: dict[str, Any]
    pieces: Iterable[bytes]
    status: int | None = None
    raw_headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    complete: bool = False
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    # From then on the server tells that the connection is closed by failing, as ASGI 2.4 has it.
    refuses_writes: bool = False

    def leave(self) -> None:
        self.gone.set()

    @property
    def headers(self) -> dict[str, str]:
        """The headers; each name must have come once."""
        names = [name for name, _ in self.raw_headers]
        assert len(names) == len(set(names)), names
        return dict(self.raw_headers)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """The error of the one envelope."""
        assert self.headers["content-type"] in ("application/json", "application/scim+json")
        body = self.json
        if body.get("type") == "error":
            error = body["error"] | {"request_id": body["request_id"]}
        else:
            scim = {"schemas", "status", "detail"} if "schemas" in body else set()
            [error] = [value for name, value in body.items() if name not in scim]
        # Only the refusal of a limit, or a provider's error that was asked for, states more.
        assert set(error) - {"limit", "provider_error"} == {
            "message",
            "type",
            "code",
            "param",
            "request_id",
        }
        assert error["request_id"] == self.headers["x-request-id"]
        assert isinstance(error, dict)
        return error

    async def run(self, app: ASGIApp) -> "Exchange":
        requests = iter(self.pieces)
        ahead: list[bytes | None] = [next(requests, b"")]

        async def receive() -> Message:
            piece = ahead.pop() if ahead else None
            if piece is not None:
                after = next(requests, None)
                if after is not None:
                    ahead.append(after)
                return {"type": "http.request", "body": piece, "more_body": after is not None}
            await self.gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if self.refuses_writes:
                raise OSError("the connection is closed")
            if message["type"] == "http.response.start":
                assert self.status is None
                self.status = message["status"]
                self.raw_headers = [(n.decode(), v.decode()) for n, v in message["headers"]]
            else:
                assert self.status is not None
                assert not self.complete
                self.body += message.get("body", b"")
                if not message.get("more_body", False):
                    self.complete = True
                    self.gone.set()

        await app(self.scope, receive, send)
        return self


def exchange(
    method: str,
    path: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | Iterable[bytes] = b"",
    **scope: Any,
) -> Exchange:
    """A request that has not been sent; the body may come in pieces."""
    target, _, query = path.partition("?")
    return Exchange(
        scope={
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": target,
            "raw_path": target.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [
                (name.lower().encode(), value.encode("latin-1"))
                for name, value in (headers or {}).items()
            ],
            "server": ("localhost", 80),
            "client": ("127.0.0.1", 1),
            **scope,
        },
        pieces=[body] if isinstance(body, bytes) else body,
    )


async def request(app: ASGIApp, method: str, path: str, **details: Any) -> Exchange:
    """Send a request and wait for the whole reply."""
    sent = exchange(method, path, **details)
    await asyncio.wait_for(sent.run(app), timeout=10_000)
    return sent
