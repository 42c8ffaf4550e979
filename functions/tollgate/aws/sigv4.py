"""AWS Signature Version 4 for requests whose whole body is known; no I/O.

Rules: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
(seen 2026-11-21). Tests compare the signatures byte for byte with botocore's SigV4Auth and
S3SigV4Auth.
"""

import hashlib
import hmac
import posixpath
import time
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import SplitResult, quote, urlsplit

from msgspec import Struct
from typing_extensions import override

from tollgate.core.clock import Clock

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
# S3 signs paths without normalizing them, because dots and slashes may be part of a key. S3 also
# requires the hash of the body in a header.
_S3: Final = "s3"
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_DATE: Final = "x-amz-date"
# Maximum number of cached prepared requests: one for each operation of a service, or each model.
_PREPARED_MAX: Final = 64
# Proxies and tracing change these headers in flight, so the headers are never signed.
_UNSIGNED: Final = frozenset({"expect", "transfer-encoding", "user-agent", "x-amzn-trace-id"})


class Credentials(Struct, frozen=True):
    """An AWS identity; `repr` leaves out the secret key and the session token."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None = None

    @override
    def __repr__(self) -> str:
        return f"Credentials(access_key_id={self.access_key_id!r})"


def fixed(credentials: Credentials) -> Callable[[], Credentials]:
    """Return a credentials source that always returns the same credentials."""
    return lambda: credentials


class Signer:
    """Signs requests to one service in one region, with the current credentials."""

    def __init__(
        self, service: str, region: str, credentials: Callable[[], Credentials], clock: Clock
    ) -> None:
        self._service = service
        self._region = region
        self._credentials = credentials
        self._clock = clock
        self._cached_for: tuple[str, str] | None = None
        self._cached_key = b""
        self._prepared: dict[tuple[object, ...], _Prepared] = {}

    def sign(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> dict[str, str]:
        """Return `headers` with the host, the date, the session token and the signature added.

        `url` must be escaped exactly as it is sent: escaping the URL again breaks the signature.
        """
        credentials = self._credentials()
        body_hash = hashlib.sha256(body).hexdigest()
        timestamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._clock.now_s()))
        prepared = self._prepare(
            method, url, headers, token=credentials.session_token, body_hash=body_hash
        )
        signed = {**prepared.headers, _DATE: timestamp}
        canonical = f"{prepared.before_date}{timestamp}{prepared.after_date}\n{body_hash}"
        scope = f"{timestamp[:8]}/{self._region}/{self._service}/aws4_request"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        signature = _hmac(
            self._signing_key(credentials.secret_access_key, timestamp[:8]),
            f"{_ALGORITHM}\n{timestamp}\n{scope}\n{digest}",
        ).hex()
        signed["authorization"] = (
            f"{_ALGORITHM} Credential={credentials.access_key_id}/{scope}, "
            f"SignedHeaders={prepared.names}, Signature={signature}"
        )
        return signed

    def _prepare(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        *,
        token: str | None,
        body_hash: str,
    ) -> "_Prepared":
        """Return the signature's parts without date and body, cached because they rarely differ."""
        if self._service == _S3:
            hashed = {**headers, "x-amz-content-sha256": body_hash}
            return _prepare(method, url, hashed, token, canonical_path=_take_path)
        named = (method, url, tuple(headers.items()), token)
        prepared = self._prepared.get(named)
        if prepared is None:
            if len(self._prepared) >= _PREPARED_MAX:
                self._prepared.clear()
            prepared = _prepare(method, url, headers, token, canonical_path=_canonical_path)
            self._prepared[named] = prepared
        return prepared

    def _signing_key(self, secret: str, day: str) -> bytes:
        """Return a day's signing key, cached because its four digests are most of the cost."""
        if self._cached_for != (secret, day):
            key = f"AWS4{secret}".encode()
            for part in (day, self._region, self._service, "aws4_request"):
                key = _hmac(key, part)
            self._cached_key = key
            self._cached_for = (secret, day)
        return self._cached_key


class _Prepared(Struct, frozen=True):
    """The parts of a signature that do not depend on the date and the body of the request."""

    headers: Mapping[str, str]
    """The headers to send, without date and authorization."""
    names: str
    """The names of the signed headers, joined by semicolons."""
    before_date: str
    """The canonical request up to the value of its date."""
    after_date: str
    """The canonical request between the date and the hash of the body."""


def _prepare(
    method: str,
    url: str,
    headers: Mapping[str, str],
    token: str | None,
    *,
    canonical_path: Callable[[str], str],
) -> _Prepared:
    parts = urlsplit(url)
    signed = {name.lower(): value for name, value in headers.items()}
    signed["host"] = _host(parts)
    for name in ("authorization", "x-amz-security-token", _DATE):
        signed.pop(name, None)
    if token is not None:
        signed["x-amz-security-token"] = token
    values = {name: " ".join(value.split()) for name, value in signed.items()}
    names = sorted((values.keys() | {_DATE}) - _UNSIGNED)
    date_index = names.index(_DATE)
    before = (
        method.upper(),
        canonical_path(parts.path),
        "&".join(_canonical_query(parts.query)),
        *(f"{name}:{values[name]}" for name in names[:date_index]),
        f"{_DATE}:",
    )
    after = (*(f"{name}:{values[name]}" for name in names[date_index + 1 :]), "", ";".join(names))
    return _Prepared(signed, ";".join(names), "\n".join(before), "\n".join(("", *after)))


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def _host(parts: SplitResult) -> str:
    """Return the Host header as HTTP clients send it: lower case, without the default port."""
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    if parts.port is None or parts.port == _DEFAULT_PORTS.get(parts.scheme):
        return host
    return f"{host}:{parts.port}"


def _take_path(path: str) -> str:
    """Return the path unchanged: S3 signs paths as they are sent."""
    return path or "/"


def _canonical_path(path: str) -> str:
    """Return the path without dot segments, escaped again, as all services except S3 require."""
    if not path or path == "/":
        return "/"
    resolved = posixpath.normpath(path)
    if path.endswith("/") and not resolved.endswith("/"):
        resolved += "/"
    # normpath keeps two leading slashes, which have a meaning in POSIX but not in URLs.
    return quote("/" + resolved.lstrip("/"), safe="/~")


def _canonical_query(query: str) -> list[str]:
    pairs = sorted(pair.partition("=")[::2] for pair in query.split("&")) if query else []
    return [f"{name}={value}" for name, value in pairs]
