"""Requests to a gateway as a client sends them: plain HTTP, without SDK and retries."""

import http.client
from collections.abc import Mapping
from contextlib import closing
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct
from pydantic_core import from_json, to_json

from tollgate.core.clock import Clock

_TIMEOUT_S: Final = 60.0
# Least share of an answer's time over which its events must arrive, because a buffering proxy
# delivers them all at the end.
_SPREAD_MIN: Final = 0.05


class Unreachable(Exception):
    """Failure to get an answer."""


class ProbeReply(Struct, frozen=True):
    """A whole answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def field(self, name: str) -> object:
        """Return a field of the JSON body; None without such a field or without JSON."""
        try:
            content = from_json(self.body)
        except ValueError:
            return None
        return content.get(name) if isinstance(content, dict) else None

    def summarize(self) -> str:
        """Return status and error message in one line."""
        error = self.field("error")
        message = error.get("message") if isinstance(error, dict) else None
        return f"{self.status} {message}" if message else str(self.status)


class StreamSeen(Struct, frozen=True):
    """A streamed answer, read to its end."""

    reply: ProbeReply
    arrived_s: tuple[float, ...]
    """Arrival of each event, in seconds after the request."""

    @property
    def whole(self) -> bool:
        """True if the answer came to its end without an error."""
        if self.reply.status != 200 or b'"error"' in self.reply.body:
            return False
        return self.reply.body.rstrip().endswith(b"data: [DONE]")

    @property
    def came_apart(self) -> bool:
        """True if the events did not all arrive at the end, held back by a proxy."""
        if "content-length" in self.reply.headers or len(self.arrived_s) <= 2:
            return False
        return self.arrived_s[-1] - self.arrived_s[0] > _SPREAD_MIN * self.arrived_s[-1]


class Probe:
    """One gateway by its base URL, with or without a key."""

    def __init__(self, base_url: str, key: str | None, clock: Clock) -> None:
        self._parts = urlsplit(base_url)
        self._key = key
        self._clock = clock

    def get(self, path: str) -> ProbeReply:
        """Send GET and return the reply; raise Unreachable if there is no answer."""
        with closing(self._connection()) as connection:
            answer = self._answer(connection, "GET", path, b"")
            return _reply(answer, answer.read())

    def stream(self, model: str, prompt: str) -> StreamSeen:
        """Send a chat completion with `stream: true` and read it event by event."""
        request = {
            "model": model,
            "stream": True,
            "messages": [{"role": "user", "content": prompt}],
            "max_completion_tokens": 200,
        }
        begun_s = self._clock.monotonic_s()
        with closing(self._connection()) as connection:
            answer = self._answer(connection, "POST", "/chat/completions", to_json(request))
            body = bytearray()
            arrived_s = []
            while line := answer.readline():
                body += line
                if line.startswith(b"data:"):
                    arrived_s.append(self._clock.monotonic_s() - begun_s)
            return StreamSeen(_reply(answer, bytes(body)), tuple(arrived_s))

    def _connection(self) -> http.client.HTTPConnection:
        secure = self._parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        return kind(self._parts.netloc, timeout=_TIMEOUT_S)

    def _answer(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes
    ) -> http.client.HTTPResponse:
        headers = {"content-type": "application/json"}
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key}"
        try:
            connection.request(method, self._parts.path + path, body, headers)
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{self._parts.netloc} does not answer: {error}") from error


def _reply(answer: http.client.HTTPResponse, body: bytes) -> ProbeReply:
    headers = {name.lower(): value for name, value in answer.getheaders()}
    return ProbeReply(answer.status, headers, body)
