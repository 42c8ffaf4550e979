"""Whole objects in S3 by signed GET, PUT and DELETE, or in a folder on a machine without S3.

Keys have letters, digits, `/`, `-`, `_` and `.` alone, so that they are names of files too.
"""

import asyncio
import re
from pathlib import Path
from typing import Final, Protocol

import aiohttp
from yarl import URL

from tollgate.aws.sigv4 import Signer
from tollgate.stores.aws.failures import StoreRejected, StoreUnavailable

_KEY: Final = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*", re.ASCII)
_TIMEOUT_S: Final = 5.0
_CONNECT_TIMEOUT_S: Final = 1.0
_ATTEMPTS_MAX: Final = 2
_OBJECT_BYTES_MAX: Final = 64 * 1024 * 1024


class ObjectStore(Protocol):
    """Bytes by key; every method raises StoreUnavailable when they cannot be reached."""

    async def get(self, key: str) -> bytes | None:
        """Return the object, None if there is none."""

    async def put(self, key: str, body: bytes) -> None:
        """Keep the object, in place of one with the same key."""

    async def delete(self, key: str) -> None:
        """Delete the object; one that does not exist is no error."""

    async def close(self) -> None:
        """Close the connections."""


class S3Objects:
    """A bucket; its own default decides with which key its objects are encrypted."""

    def __init__(
        self, bucket: str, region: str, signer: Signer, *, endpoint_url: str | None = None
    ) -> None:
        host = f"https://{bucket}.s3.{region}.amazonaws.com"
        self._base = f"{endpoint_url.rstrip('/')}/{bucket}" if endpoint_url else host
        self._signer = signer
        self._session: aiohttp.ClientSession | None = None

    async def get(self, key: str) -> bytes | None:
        """Return the object, None if there is none."""
        status, body = await self._send("GET", key, b"")
        if status == 404:
            return None
        if status != 200:
            raise StoreRejected(f"HTTP {status}", "GET of an object")
        return body

    async def put(self, key: str, body: bytes) -> None:
        """Keep the object, in place of one with the same key."""
        status, _ = await self._send("PUT", key, body)
        if status != 200:
            raise StoreRejected(f"HTTP {status}", "PUT of an object")

    async def delete(self, key: str) -> None:
        """Delete the object; one that does not exist is no error."""
        status, _ = await self._send("DELETE", key, b"")
        if status not in (200, 204, 404):
            raise StoreRejected(f"HTTP {status}", "DELETE of an object")

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _send(self, method: str, key: str, body: bytes) -> tuple[int, bytes]:
        """Return status and body of a request; each may be repeated without harm."""
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            try:
                status, content = await self._send_once(method, key, body)
            except (aiohttp.ClientError, TimeoutError) as failed:
                if attempt == _ATTEMPTS_MAX:
                    name = type(failed).__name__
                    raise StoreUnavailable(f"{method}: {name}", maybe_applied=True) from failed
            else:
                if status < 500:
                    return status, content
        raise StoreUnavailable(f"{method}: HTTP error of S3", maybe_applied=True)

    async def _send_once(self, method: str, key: str, body: bytes) -> tuple[int, bytes]:
        url = f"{self._base}/{_check_key(key)}"
        headers: dict[str, str] = {}
        if method == "PUT":
            headers["content-type"] = "application/octet-stream"
        async with self._open_session().request(
            method,
            URL(url, encoded=True),
            data=body or None,
            headers=self._signer.sign(method, url, headers, body),
            allow_redirects=False,
        ) as response:
            content = bytearray()
            while chunk := await response.content.readany():
                content += chunk
                if len(content) > _OBJECT_BYTES_MAX:
                    raise StoreRejected("TooLarge", "the object is larger than anything we put")
            return response.status, bytes(content)

    def _open_session(self) -> aiohttp.ClientSession:
        """Return the session, opened within the event loop that it belongs to."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S, sock_connect=_CONNECT_TIMEOUT_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
                auto_decompress=False,
            )
        return self._session


class FolderObjects:
    """The objects of a local server, in files that only its user may read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def get(self, key: str) -> bytes | None:
        """Return the object, None if there is none."""
        return await asyncio.to_thread(self._read, self._folder / _check_key(key))

    async def put(self, key: str, body: bytes) -> None:
        """Keep the object, in place of one with the same key."""
        await asyncio.to_thread(self._write, self._folder / _check_key(key), body)

    async def delete(self, key: str) -> None:
        """Delete the object; one that does not exist is no error."""
        path = self._folder / _check_key(key)
        await asyncio.to_thread(path.unlink, missing_ok=True)

    async def close(self) -> None:
        """Leave everything as it is: a folder has no connections."""

    def _read(self, path: Path) -> bytes | None:
        return path.read_bytes() if path.is_file() else None

    def _write(self, path: Path, body: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        written = path.with_name(f"{path.name}.part")
        written.touch(mode=0o600)
        written.write_bytes(body)
        written.replace(path)


def _check_key(key: str) -> str:
    if not _KEY.fullmatch(key) or ".." in key:
        raise ValueError(f"not a name for an object: {key!r}")
    return key
