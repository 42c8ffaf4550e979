"""Encodes requests, and refuses everything that could end a header line early."""

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
# Maximum length of URLs whose parts are cached. The URLs of providers are few and short, but URLs
# from callers and redirects may be long.
_SHORT: Final = 512
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
USUAL_HEADERS: Final[Mapping[str, str]] = {
    "user-agent": "tollgate",
    "accept": "*/*",
    "accept-encoding": "identity",
}
# Headers that only this module writes, because they determine where a request ends.
_FRAMING: Final = frozenset({"connection", "content-length", "transfer-encoding"})
# Control characters except tab, CR and LF; CR and LF are checked by counting line breaks.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Origin(Struct, frozen=True):
    """A server; the host has no brackets, not even for an IPv6 address."""

    scheme: str
    host: str
    port: int

    def host_header(self) -> str:
        """Return the value of `Host`, without the scheme's default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


class Request(Struct, frozen=True, kw_only=True):
    """A request whose `url` is already escaped.

    `headers` must not contain framing, and may omit `host`. `body` consists of parts, which avoids
    a copy.
    """

    method: Method
    url: str
    headers: Mapping[str, str]
    body: Sequence[bytes | memoryview] = ()


def parse_url(url: str) -> tuple[Origin, str]:
    """Return the server and the request target of a URL; raise InvalidRequest."""
    return (_parse_short if len(url) <= _SHORT else _parse)(url)


def _parse(url: str) -> tuple[Origin, str]:
    match = _URL.fullmatch(url)
    if match is None:
        raise InvalidRequest("the URL cannot be encoded")
    scheme, host, target = match["scheme"], match["host"].lower(), match["target"] or "/"
    port = int(match["port"] or _PORTS[scheme])
    if not 0 < port <= _PORT_MAX:
        raise InvalidRequest("the URL has an invalid port")
    return Origin(scheme, host.strip("[]"), port), target if target[0] == "/" else f"/{target}"


_parse_short: Final = lru_cache(512)(_parse)


def write_request(request: Request) -> tuple[Origin, bytes]:
    """Return a request's server, and its encoded request line and headers; raise InvalidRequest."""
    origin, target = parse_url(request.url)
    headers = request.headers
    if "host" not in headers:
        headers = {"host": origin.host_header(), **headers}
    size = sum(map(len, request.body))
    framing = f"content-length: {size}\r\n" if size or request.method != "GET" else ""
    return origin, encode_head(request.method, target, headers, framing)


def encode_head(method: str, target: str, headers: Mapping[str, str], framing: str) -> bytes:
    """Return the encoded request line and headers; raise InvalidRequest.

    `framing` consists of complete header lines, which determine where the body ends.
    """
    lines = [f"{method} {target} HTTP/1.1\r\n"]
    for name, value in headers.items():
        _check_name(name)
        lines.append(f"{name}: {value}\r\n")
    text = "".join(lines)
    ends = len(lines)
    if not text.count("\r\n") == text.count("\r") == text.count("\n") == ends:
        raise InvalidRequest("a header contains a line break")
    if _CONTROLS.search(text):
        raise InvalidRequest("a header contains a control character")
    return f"{text}{framing}\r\n".encode("utf-8", "replace")


@lru_cache(512)
def _check_name(name: str) -> None:
    if _NAME.fullmatch(name) is None or name.lower() in _FRAMING:
        raise InvalidRequest("a header has an invalid name")
