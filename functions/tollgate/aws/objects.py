"""Stores of whole objects: an S3 bucket, or a local folder for servers without S3.

Object keys consist of letters, digits, `/`, `-`, `_`, `.` and `=`, so they are valid file names.
"""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from tollgate.aws.failures import StoreRejected, StoreUnavailable
from tollgate.aws.sigv4 import Signer
from tollgate.http1.errors import HttpError, ReplyTooLong
from tollgate.http1.pool import Pool
from tollgate.http1.request import Method, Request

_KEY: Final = re.compile(r"[A-Za-z0-9_.=-]+(/[A-Za-z0-9_.=-]+)*", re.ASCII)
_TIMEOUT_S: Final = 5.0
_CONNECT_TIMEOUT_S: Final = 1.0
_CONNECTIONS_MAX: Final = 100
_ATTEMPTS_MAX: Final = 2
_NO_HEADERS: Final[Mapping[str, str]] = {}
_OBJECT_BYTES_MAX: Final = 64 * 1024 * 1024
# Time limit for a copy, because S3 takes a few seconds to copy half a gigabyte.
_MOVE_TIMEOUT_S: Final = 25.0


class ObjectHead(Struct, frozen=True, kw_only=True):
    """The size of an object and its first bytes."""

    size_bytes: int
    head: bytes


class ObjectStore(Protocol):
    """A store of objects by key; every method raises StoreUnavailable if it cannot be reached."""

    async def get(self, key: str, *, timeout_s: float = _TIMEOUT_S) -> bytes | None:
        """Return an object's bytes, or None if the object does not exist."""

    async def get_head(self, key: str, bytes_max: int) -> ObjectHead | None:
        """Return the size and first bytes of a non-empty object, or None if it does not exist."""

    async def move(self, key: str, to: str, media_type: str) -> None:
        """Move an object to `to`, replacing any object there; ignore a missing object."""

    async def put(self, key: str, body: bytes) -> None:
        """Store an object, replacing any object with the same key."""

    async def delete(self, key: str) -> None:
        """Delete an object; ignore a missing object."""

    async def close(self) -> None:
        """Close the connections."""


class _Reply(Struct, frozen=True, kw_only=True):
    status: int
    body: bytes
    range: str
    """Value of the Content-Range header, or an empty string."""


class S3Objects:
    """Objects in an S3 bucket, encrypted with the bucket's default key."""

    def __init__(
        self, bucket: str, region: str, signer: Signer, *, endpoint_url: str | None = None
    ) -> None:
        host = f"https://{bucket}.s3.{region}.amazonaws.com"
        self._base = f"{endpoint_url.rstrip('/')}/{bucket}" if endpoint_url else host
        self._bucket = bucket
        self._signer = signer
        self._pool = Pool(_CONNECTIONS_MAX)

    async def get(self, key: str, *, timeout_s: float = _TIMEOUT_S) -> bytes | None:
        reply = await self._send("GET", key, timeout_s=timeout_s)
        if reply.status == 404:
            return None
        if reply.status != 200:
            raise StoreRejected(f"HTTP {reply.status}", "GET of an object")
        return reply.body

    async def get_head(self, key: str, bytes_max: int) -> ObjectHead | None:
        reply = await self._send("GET", key, headers={"range": f"bytes=0-{bytes_max - 1}"})
        if reply.status == 404:
            return None
        if reply.status != 206:
            raise StoreRejected(f"HTTP {reply.status}", "GET of an object's head")
        return ObjectHead(size_bytes=int(reply.range.rpartition("/")[2]), head=reply.body)

    async def move(self, key: str, to: str, media_type: str) -> None:
        copying = {
            "content-type": media_type,
            "x-amz-copy-source": f"/{self._bucket}/{_check_key(key)}",
            "x-amz-metadata-directive": "REPLACE",
        }
        reply = await self._send("PUT", to, headers=copying, timeout_s=_MOVE_TIMEOUT_S)
        if reply.status == 404:
            return
        # S3 sends status 200 when a copy begins; a later error is in the body.
        if reply.status != 200 or b"<Error>" in reply.body:
            raise StoreRejected(f"HTTP {reply.status}", "PUT of a copy")
        await self.delete(key)

    async def put(self, key: str, body: bytes) -> None:
        reply = await self._send(
            "PUT", key, body, headers={"content-type": "application/octet-stream"}
        )
        if reply.status != 200:
            raise StoreRejected(f"HTTP {reply.status}", "PUT of an object")

    async def delete(self, key: str) -> None:
        reply = await self._send("DELETE", key)
        if reply.status not in (200, 204, 404):
            raise StoreRejected(f"HTTP {reply.status}", "DELETE of an object")

    async def close(self) -> None:
        await self._pool.close()

    async def _send(
        self,
        method: Method,
        key: str,
        body: bytes = b"",
        *,
        headers: Mapping[str, str] = _NO_HEADERS,
        timeout_s: float = _TIMEOUT_S,
    ) -> _Reply:
        """Return the reply to a request; retry a failure, since all requests are idempotent."""
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            try:
                async with asyncio.timeout(timeout_s):
                    reply = await self._send_once(method, key, body, headers)
            except ReplyTooLong as large:
                raise StoreRejected(
                    "TooLarge", "the object is larger than any that Tollgate writes"
                ) from large
            except (HttpError, TimeoutError) as failed:
                if attempt == _ATTEMPTS_MAX:
                    name = type(failed).__name__
                    raise StoreUnavailable(f"{method}: {name}", maybe_applied=True) from failed
            else:
                if reply.status < 500:
                    return reply
        raise StoreUnavailable(f"{method}: S3 returned a server error", maybe_applied=True)

    async def _send_once(
        self, method: Method, key: str, body: bytes, headers: Mapping[str, str]
    ) -> _Reply:
        # S3 computes the signature of the path with `=` percent-encoded (RFC 3986).
        url = f"{self._base}/{_check_key(key).replace('=', '%3D')}"
        signed = self._signer.sign(method, url, headers, body)
        request = Request(method=method, url=url, headers=signed, body=(body,) if body else ())
        reply = await self._pool.send(request, connect_s=_CONNECT_TIMEOUT_S)
        try:
            content = await reply.read_all(_OBJECT_BYTES_MAX)
        finally:
            reply.close()
        named = reply.headers.get("content-range", "")
        return _Reply(status=reply.status, body=content, range=named)


class FolderObjects:
    """Objects of a local server, in files that only the server's user may read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def get(self, key: str, *, timeout_s: float = _TIMEOUT_S) -> bytes | None:
        return await asyncio.to_thread(self._read, self._folder / _check_key(key))

    async def get_head(self, key: str, bytes_max: int) -> ObjectHead | None:
        return await asyncio.to_thread(self._read_head, self._folder / _check_key(key), bytes_max)

    async def move(self, key: str, to: str, media_type: str) -> None:
        source, target = self._folder / _check_key(key), self._folder / _check_key(to)
        await asyncio.to_thread(self._rename, source, target)

    async def put(self, key: str, body: bytes) -> None:
        await asyncio.to_thread(self._write, self._folder / _check_key(key), body)

    async def delete(self, key: str) -> None:
        path = self._folder / _check_key(key)
        await asyncio.to_thread(path.unlink, missing_ok=True)

    async def close(self) -> None:
        """Return at once: a folder has no connections."""

    def _read(self, path: Path) -> bytes | None:
        return path.read_bytes() if path.is_file() else None

    def _read_head(self, path: Path, bytes_max: int) -> ObjectHead | None:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return ObjectHead(size_bytes=path.stat().st_size, head=file.read(bytes_max))

    def _rename(self, path: Path, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileNotFoundError):
            path.replace(target)

    def _write(self, path: Path, body: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        written = path.with_name(f"{path.name}.part")
        written.touch(mode=0o600)
        written.write_bytes(body)
        written.replace(path)


def _check_key(key: str) -> str:
    if not _KEY.fullmatch(key) or ".." in key:
        raise ValueError(f"invalid object key: {key!r}")
    return key
