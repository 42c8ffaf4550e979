"""AWS Signature Version 4 for requests whose whole body is known; no I/O.

Rules: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
(seen 2026-11-21). Tests hold it byte for byte to botocore's SigV4Auth and S3SigV4Auth.
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
# It takes paths as they are sent, because dots and slashes may be part of a key, and wants the hash
# of the body in a header.
_S3: Final = "s3"
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
# Proxies and tracing rewrite these in flight, so they are never part of a signature.
_UNSIGNED: Final = frozenset({"expect", "transfer-encoding", "user-agent", "x-amzn-trace-id"})


class Credentials(Struct, frozen=True):
    """An AWS identity; the secret halves stay out of `repr`."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None = None

    @override
    def __repr__(self) -> str:
        return f"Credentials(access_key_id={self.access_key_id!r})"


def fixed(credentials: Credentials) -> Callable[[], Credentials]:
    """Return a source of credentials that do not change while the process lives."""
    return lambda: credentials


class Signer:
    """Signs requests to one service in one region.

    It gets the credentials anew for every signature because Lambda rotates them.
    """

    def __init__(
        self, service: str, region: str, credentials: Callable[[], Credentials], clock: Clock
    ) -> None:
        self._service = service
        self._region = region
        self._credentials = credentials
        self._clock = clock
        self._cached_for: tuple[str, str] | None = None
        self._cached_key = b""

    def sign(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> dict[str, str]:
        """Return the headers to send: those given, with `host`, date, token and authorization.

        `url` must be escaped as it will be sent; a client that escapes it again breaks the
        signature.
        """
        credentials = self._credentials()
        body_hash = hashlib.sha256(body).hexdigest()
        timestamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._clock.now_s()))
        parts = urlsplit(url)
        signed = {name.lower(): value for name, value in headers.items()}
        signed["host"] = _host(parts)
        signed["x-amz-date"] = timestamp
        signed.pop("authorization", None)
        signed.pop("x-amz-security-token", None)
        if credentials.session_token is not None:
            signed["x-amz-security-token"] = credentials.session_token
        if self._service == _S3:
            signed["x-amz-content-sha256"] = body_hash
        names = sorted(signed.keys() - _UNSIGNED)
        canonical = "\n".join(
            (
                method.upper(),
                (parts.path or "/") if self._service == _S3 else _canonical_path(parts.path),
                "&".join(_canonical_query(parts.query)),
                *(f"{name}:{' '.join(signed[name].split())}" for name in names),
                "",
                ";".join(names),
                body_hash,
            )
        )
        scope = f"{timestamp[:8]}/{self._region}/{self._service}/aws4_request"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        signature = _hmac(
            self._signing_key(credentials.secret_access_key, timestamp[:8]),
            f"{_ALGORITHM}\n{timestamp}\n{scope}\n{digest}",
        ).hex()
        signed["authorization"] = (
            f"{_ALGORITHM} Credential={credentials.access_key_id}/{scope}, "
            f"SignedHeaders={';'.join(names)}, Signature={signature}"
        )
        return signed

    def _signing_key(self, secret: str, day: str) -> bytes:
        """Return the key of one day, derived once because its four digests cost most of a
        signature."""
        if self._cached_for != (secret, day):
            key = f"AWS4{secret}".encode()
            for part in (day, self._region, self._service, "aws4_request"):
                key = _hmac(key, part)
            self._cached_key = key
            self._cached_for = (secret, day)
        return self._cached_key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def _host(parts: SplitResult) -> str:
    """Return the Host header as HTTP clients send it: lower case, without the scheme's own port."""
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    if parts.port is None or parts.port == _DEFAULT_PORTS.get(parts.scheme):
        return host
    return f"{host}:{parts.port}"


def _canonical_path(path: str) -> str:
    """Return the path without dot segments, escaped once more, as every service but S3 needs it."""
    if not path or path == "/":
        return "/"
    resolved = posixpath.normpath(path)
    if path.endswith("/") and not resolved.endswith("/"):
        resolved += "/"
    # normpath keeps exactly two leading slashes, which POSIX gives a meaning and URLs do not.
    return quote("/" + resolved.lstrip("/"), safe="/~")


def _canonical_query(query: str) -> list[str]:
    pairs = sorted(pair.partition("=")[::2] for pair in query.split("&")) if query else []
    return [f"{name}={value}" for name, value in pairs]
