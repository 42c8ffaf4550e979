"""Encoding of requests; anything that could end a line early is refused."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal

from msgspec import Struct

from tollgate.http1.errors import InvalidRequest

Method = Literal["DELETE", "GET", "POST", "PUT"]

_PORTS: Final = {"http": 80, "https": 443}
_PORT_MAX: Final = 65_535
_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_](?:[A-Za-z0-9._-]*))"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<target>[/?][!\"$-~]*)?",
    re.ASCII,
)
# The URLs of providers are few and short, and their parts are cached. Those of callers and
# redirects may be as long as a reply's head, and are not cached.
_SHORT: Final = 512
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
USUAL_HEADERS: Final[Mapping[str, str]] = {
    "user-agent": "tollgate",
    "accept": "*/*",
    "accept-encoding": "identity",
}
# Headers that only the sender writes, because they say where a request ends.
_FRAMING: Final = frozenset({"connection", "content-length", "transfer-encoding"})
# Control characters other than tab, CR and LF; line ends are counted instead.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Origin(Struct, frozen=True):
    """A server; the host has no brackets, even if it is an IPv6 address."""

    scheme: str
    host: str
    port: int

    def host_header(self) -> str:
        """Return the value of `Host`, without the scheme's default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


class Request(Struct, frozen=True, kw_only=True):
    """A request whose `url` is already escaped.

    `headers` exclude the framing, and need not include `host`. `body` is in parts, so that none is
    copied.
    """

    method: Method
    url: str
    headers: Mapping[str, str]
    body: Sequence[bytes | memoryview] = ()


def parse_url(url: str) -> tuple[Origin, str]:
    """Return the server and the request target of a URL; raise InvalidRequest."""
    return (_parse_short if len(url) <= _SHORT else _parse)(url)


def _parse(url: str) -> tuple[Origin, str]:
    found = _URL.fullmatch(url)
    if found is None:
        raise InvalidRequest("a URL that cannot be sent")
    scheme, host, target = found["scheme"], found["host"].lower(), found["target"] or "/"
    port = int(found["port"] or _PORTS[scheme])
    if not 0 < port <= _PORT_MAX:
        raise InvalidRequest("a URL with a port that does not exist")
    return Origin(scheme, host.strip("[]"), port), target if target[0] == "/" else f"/{target}"


_parse_short: Final = lru_cache(512)(_parse)


def write_request(request: Request) -> tuple[Origin, bytes]:
    """Return a request's server, and the encoded request up to its body; raise InvalidRequest."""
    origin, target = parse_url(request.url)
    headers = request.headers
    if "host" not in headers:
        headers = {"host": origin.host_header(), **headers}
    size = sum(map(len, request.body))
    framing = f"content-length: {size}\r\n" if size or request.method != "GET" else ""
    return origin, encode_head(request.method, target, headers, framing)


def encode_head(method: str, target: str, headers: Mapping[str, str], framing: str) -> bytes:
    """Return an encoded request up to its body; raise InvalidRequest.

    `framing` is made of whole header lines, which say where the body ends.
    """
    lines = [f"{method} {target} HTTP/1.1\r\n"]
    for name, value in headers.items():
        _check_name(name)
        lines.append(f"{name}: {value}\r\n")
    text = "".join(lines)
    ends = len(lines)
    if not text.count("\r\n") == text.count("\r") == text.count("\n") == ends:
        raise InvalidRequest("a header with the end of a line in it")
    if _CONTROLS.search(text):
        raise InvalidRequest("a header with a control character in it")
    return f"{text}{framing}\r\n".encode("utf-8", "replace")


@lru_cache(512)
def _check_name(name: str) -> None:
    if _NAME.fullmatch(name) is None or name.lower() in _FRAMING:
        raise InvalidRequest("a header with a name that cannot be sent")
