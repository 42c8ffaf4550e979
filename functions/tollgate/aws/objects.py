"""Stores of whole objects: an S3 bucket, or a local folder for servers without S3.

Object keys consist of letters, digits, `/`, `-`, `_`, `.` and `=`, so they are valid file names.
"""

import asyncio
import os
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Final, Protocol
from urllib.parse import quote

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
_GROUP_MAX: Final = 1_000
_ENTRY: Final = re.compile(r"<Contents>(.*?)</Contents>", re.DOTALL)
_INNER: Final = {name: re.compile(f"<{name}>([^<]*)</{name}>") for name in ("Key", "LastModified")}
# S3 takes a few seconds to copy half a gigabyte.
_COPY_TIMEOUT_S: Final = 25.0


class ObjectHead(Struct, frozen=True, kw_only=True):
    """The size of an object and its first bytes."""

    size_bytes: int
    head: bytes
    etag: str
    """Identifier of this version of the object; each new version has a different one."""


class ListedObject(Struct, frozen=True, kw_only=True):
    """An object, and the Unix second in which it was last written."""

    key: str
    written_s: float


class ObjectStore(Protocol):
    """A store of objects by key; every method raises StoreUnavailable if it cannot be reached."""

    async def get(self, key: str, *, timeout_s: float = _TIMEOUT_S) -> bytes | None:
        """Return an object's bytes, or None if the object does not exist."""

    async def get_head(self, key: str, bytes_max: int) -> ObjectHead | None:
        """Return the size and first bytes of a non-empty object, or None if it does not exist."""

    async def copy(self, key: str, to: str, media_type: str, *, etag: str) -> bool:
        """Copy the version `etag` of an object to `to`, replacing any object there.

        Return False if the object is missing or has another version.
        """

    async def seal(self, key: str) -> None:
        """Replace an object with an empty one, which counts as missing and stops signed uploads."""

    async def put(self, key: str, body: bytes) -> None:
        """Store an object, replacing any object with the same key."""

    async def delete(self, key: str) -> None:
        """Delete an object; ignore a missing object."""

    def list(self, prefix: str) -> AsyncIterator[Sequence[ListedObject]]:
        """Yield all objects below a prefix, which ends in `/`, in groups of at most 1,000."""

    async def close(self) -> None:
        """Close the connections."""


class _Reply(Struct, frozen=True, kw_only=True):
    status: int
    body: bytes
    range: str
    """Value of the Content-Range header, or an empty string."""
    etag: str


class S3Objects:
    """Objects in an S3 bucket, encrypted with the bucket's default key."""

    def __init__(
        self,
        bucket: str,
        region: str,
        signer: Signer,
        *,
        endpoint_url: str | None = None,
        checksums: bool = False,
    ) -> None:
        """Connect to a bucket; a bucket with Object Lock requires `checksums` of stored content."""
        host = f"https://{bucket}.s3.{region}.amazonaws.com"
        self.url = f"{endpoint_url.rstrip('/')}/{bucket}" if endpoint_url else host
        """The bucket's address; the key of an object is appended to it."""
        self._bucket = bucket
        self._checksums = checksums
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
        # S3 answers 416 for a range of an empty object.
        if reply.status in (404, 416):
            return None
        if reply.status != 206:
            raise StoreRejected(f"HTTP {reply.status}", "GET of an object's head")
        size_bytes = int(reply.range.rpartition("/")[2])
        return ObjectHead(size_bytes=size_bytes, head=reply.body, etag=reply.etag)

    async def copy(self, key: str, to: str, media_type: str, *, etag: str) -> bool:
        copying = {
            "content-type": media_type,
            "x-amz-copy-source": f"/{self._bucket}/{_check_key(key)}",
            "x-amz-copy-source-if-match": etag,
            "x-amz-metadata-directive": "REPLACE",
        }
        reply = await self._send("PUT", to, headers=copying, timeout_s=_COPY_TIMEOUT_S)
        if reply.status in (404, 412):
            return False
        # S3 sends status 200 when a copy begins; a later error is in the body.
        if reply.status != 200 or b"<Error>" in reply.body:
            raise StoreRejected(f"HTTP {reply.status}", "PUT of a copy")
        return True

    async def seal(self, key: str) -> None:
        await self.put(key, b"")

    async def put(self, key: str, body: bytes) -> None:
        headers = {"content-type": "application/octet-stream"}
        if self._checksums:
            headers["x-amz-checksum-sha256"] = b64encode(sha256(body).digest()).decode()
        reply = await self._send("PUT", key, body, headers=headers)
        if reply.status != 200:
            raise StoreRejected(f"HTTP {reply.status}", "PUT of an object")

    async def delete(self, key: str) -> None:
        reply = await self._send("DELETE", key)
        if reply.status not in (200, 204, 404):
            raise StoreRejected(f"HTTP {reply.status}", "DELETE of an object")

    async def list(self, prefix: str) -> AsyncIterator[Sequence[ListedObject]]:
        query = f"list-type=2&max-keys={_GROUP_MAX}&prefix={quote(prefix, safe='')}"
        url = f"{self.url}/?{query}"
        while True:
            reply = await self._request("GET", url)
            if reply.status != 200:
                raise StoreRejected(f"HTTP {reply.status}", "a list of objects")
            group = [_read_listed(entry) for entry in _ENTRY.findall(reply.body.decode())]
            if group:
                yield group
            if "<IsTruncated>true" not in reply.body.decode() or not group:
                return
            url = f"{self.url}/?{query}&start-after={quote(group[-1].key, safe='')}"

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
        # S3 computes the signature of the path with `=` percent-encoded (RFC 3986).
        url = f"{self.url}/{_check_key(key).replace('=', '%3D')}"
        return await self._request(method, url, body, headers=headers, timeout_s=timeout_s)

    async def _request(
        self,
        method: Method,
        url: str,
        body: bytes = b"",
        *,
        headers: Mapping[str, str] = _NO_HEADERS,
        timeout_s: float = _TIMEOUT_S,
    ) -> _Reply:
        """Return the reply to a request; retry a failure, since all requests are idempotent."""
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            try:
                async with asyncio.timeout(timeout_s):
                    reply = await self._send_once(method, url, body, headers)
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
        self, method: Method, url: str, body: bytes, headers: Mapping[str, str]
    ) -> _Reply:
        signed = self._signer.sign(method, url, headers, body)
        request = Request(method=method, url=url, headers=signed, body=(body,) if body else ())
        reply = await self._pool.send(request, connect_s=_CONNECT_TIMEOUT_S)
        try:
            content = await reply.read_all(_OBJECT_BYTES_MAX)
        finally:
            reply.close()
        return _Reply(
            status=reply.status,
            body=content,
            range=reply.headers.get("content-range", ""),
            etag=reply.headers.get("etag", ""),
        )


class FolderObjects:
    """Objects of a local server, in files that only the server's user may read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def get(self, key: str, *, timeout_s: float = _TIMEOUT_S) -> bytes | None:
        return await asyncio.to_thread(self._read, self._folder / _check_key(key))

    async def get_head(self, key: str, bytes_max: int) -> ObjectHead | None:
        return await asyncio.to_thread(self._read_head, self._folder / _check_key(key), bytes_max)

    async def copy(self, key: str, to: str, media_type: str, *, etag: str) -> bool:
        source, target = self._folder / _check_key(key), self._folder / _check_key(to)
        return await asyncio.to_thread(self._link, source, target, etag)

    async def seal(self, key: str) -> None:
        await self.put(key, b"")

    async def put(self, key: str, body: bytes) -> None:
        await asyncio.to_thread(self._write, self._folder / _check_key(key), body)

    async def delete(self, key: str) -> None:
        path = self._folder / _check_key(key)
        await asyncio.to_thread(path.unlink, missing_ok=True)

    async def list(self, prefix: str) -> AsyncIterator[Sequence[ListedObject]]:
        found = self._walk(prefix)
        while group := await asyncio.to_thread(lambda: [*islice(found, _GROUP_MAX)]):
            yield group

    async def close(self) -> None:
        """Close nothing, because a folder has no connections."""

    def _read(self, path: Path) -> bytes | None:
        return path.read_bytes() if path.is_file() else None

    def _read_head(self, path: Path, bytes_max: int) -> ObjectHead | None:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if not found.st_size:
                return None
            head = file.read(bytes_max)
        return ObjectHead(size_bytes=found.st_size, head=head, etag=_etag(found))

    def _walk(self, prefix: str) -> Iterator[ListedObject]:
        for folder, _, names in os.walk(self._folder / prefix):
            for name in names:
                path = Path(folder) / name
                with suppress(FileNotFoundError):
                    key = path.relative_to(self._folder).as_posix()
                    yield ListedObject(key=key, written_s=path.stat().st_mtime)

    def _link(self, path: Path, target: Path, etag: str) -> bool:
        """Give a file a second path, which stays valid if the first path is replaced."""
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with TemporaryDirectory(dir=target.parent) as folder:
            linked = Path(folder) / "content"
            try:
                linked.hardlink_to(path)
            except FileNotFoundError:
                return False
            if _etag(linked.stat()) != etag:
                return False
            linked.replace(target)
        return True

    def _write(self, path: Path, body: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Concurrent writers have separate temporary files, which only this user may read.
        with NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(body)
        Path(file.name).replace(path)


def _read_listed(entry: str) -> ListedObject:
    """Return an object in S3's list; object keys have no characters that XML escapes."""
    key, written = (_INNER[name].search(entry) for name in ("Key", "LastModified"))
    if key is None or written is None:
        raise StoreRejected("no key", "a list of objects")
    written_s = datetime.fromisoformat(written[1]).timestamp()
    return ListedObject(key=key[1], written_s=written_s)


def _etag(found: os.stat_result) -> str:
    """Return an identifier for a file; a replacement has a different inode number or time."""
    return f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}"


def _check_key(key: str) -> str:
    if not _KEY.fullmatch(key) or ".." in key:
        raise ValueError(f"invalid object key: {key!r}")
    return key
