"""A plain HTTP client of a gateway, without an SDK or retries."""

import http.client
from collections.abc import Mapping
from contextlib import closing
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct
from pydantic_core import from_json, to_json

from tollgate.core.clock import Clock

_TIMEOUT_S: Final = 60.0
# A buffering proxy delivers all events at the end. Without buffering, the arrivals are spread over
# at least this share of the answer's time.
_SPREAD_MIN: Final = 0.05


class Unreachable(Exception):
    """Raised for a request that got no answer."""


class ProbeReply(Struct, frozen=True):
    """A complete reply; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def field(self, name: str) -> object:
        """Return a field in the JSON body; None if the body has no such field or is not JSON."""
        try:
            content = from_json(self.body)
        except ValueError:
            return None
        return content.get(name) if isinstance(content, dict) else None

    def summarize(self) -> str:
        """Return the status and the error message, if there is one."""
        error = self.field("error")
        message = error.get("message") if isinstance(error, dict) else None
        return f"{self.status} {message}" if message else str(self.status)


class StreamSeen(Struct, frozen=True):
    """A streamed reply, read to its end."""

    reply: ProbeReply
    arrived_s: tuple[float, ...]
    """Arrival times of the events, in seconds after the request."""

    @property
    def whole(self) -> bool:
        """True if the answer is complete and has no error."""
        if self.reply.status != 200 or b'"error"' in self.reply.body:
            return False
        return self.reply.body.rstrip().endswith(b"data: [DONE]")

    @property
    def came_apart(self) -> bool:
        """True if the events arrived over time; False if a proxy buffered them."""
        if "content-length" in self.reply.headers or len(self.arrived_s) <= 2:
            return False
        return self.arrived_s[-1] - self.arrived_s[0] > _SPREAD_MIN * self.arrived_s[-1]


class Probe:
    """A client of one gateway, with or without a key."""

    def __init__(self, base_url: str, key: str | None, clock: Clock) -> None:
        self._parts = urlsplit(base_url)
        self._key = key
        self._clock = clock

    def get(self, path: str) -> ProbeReply:
        """Send GET and return the reply; raise Unreachable if the gateway does not answer."""
        with closing(self._connection()) as connection:
            answer = self._answer(connection, "GET", path, b"")
            return _reply(answer, answer.read())

    def stream(self, model: str, prompt: str, *, provider: str | None = None) -> StreamSeen:
        """Send a streaming chat completion to one provider, or to any, and read its events as they
        arrive.
        """
        request: dict[str, object] = {
            "model": model,
            "stream": True,
            "messages": [{"role": "user", "content": prompt}],
            "max_completion_tokens": 200,
        }
        if provider is not None:
            request["provider"] = {"only": [provider], "allow_fallbacks": False}
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
