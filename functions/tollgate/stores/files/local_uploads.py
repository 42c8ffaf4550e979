"""Signed upload URLs for a server that stores files in a folder instead of a bucket.

The URL itself is the permission for one upload: it contains the key, the size, the type and the
expiry, signed with a secret of this process.
"""

import asyncio
import base64
import hmac
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import NamedTemporaryFile

import msgspec
from msgspec import Struct

from tollgate.core.clock import Clock
from tollgate.core.errors import AccessError, ErrorCode, RequestError
from tollgate.core.files.stored import LOCAL_UPLOADS, UPLOAD_S, SignedUpload


class _Permit(Struct, frozen=True, kw_only=True):
    key: str
    size_bytes: int
    media_type: str
    expires_s: int


class LocalUploads:
    """Implements `stores.ports.administration.SignedContents`, and signs the URLs."""

    def __init__(self, folder: Path, secret: bytes, clock: Clock) -> None:
        self._folder = folder
        self._secret = secret
        self._clock = clock
        # Keys of the uploads in progress; several uploads to the same URL could fill the disk.
        self._receiving = set[str]()

    def sign(self, key: str, *, size_bytes: int, media_type: str) -> SignedUpload:
        """Return an upload URL, without a host, for a file of this size and type."""
        permit = _Permit(
            key=key,
            size_bytes=size_bytes,
            media_type=media_type,
            expires_s=int(self._clock.now_s()) + UPLOAD_S,
        )
        stated = base64.urlsafe_b64encode(msgspec.json.encode(permit)).decode().rstrip("=")
        return SignedUpload(
            url=f"{LOCAL_UPLOADS}{stated}.{self._signature(stated)}",
            headers={"content-length": str(size_bytes), "content-type": media_type},
            expires_s=permit.expires_s,
        )

    async def receive(self, token: str, media_type: str, chunks: AsyncIterator[bytes]) -> None:
        """Write a file that is sent to a signed URL.

        Raises AccessError if the URL is not signed, has expired or has been used, and RequestError
        if the file has the wrong size or type.
        """
        permit = self._read(token)
        if media_type != permit.media_type:
            raise _refused("content-type", f"the address is signed for {permit.media_type}")
        path = self._folder / permit.key
        if permit.key in self._receiving or await asyncio.to_thread(path.exists):
            raise _used()
        self._receiving.add(permit.key)
        try:
            await self._receive(path, permit.size_bytes, chunks)
        finally:
            self._receiving.discard(permit.key)

    async def _receive(self, path: Path, size_bytes: int, chunks: AsyncIterator[bytes]) -> None:
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True, mode=0o700)
        received_bytes = 0
        # Only this user may read the temporary file.
        with NamedTemporaryFile(dir=path.parent, delete=False) as file:
            written = Path(file.name)
            try:
                async for chunk in chunks:
                    received_bytes += len(chunk)
                    if received_bytes > size_bytes:
                        break
                    await asyncio.to_thread(file.write, chunk)
                if received_bytes != size_bytes:
                    what = f"the address is signed for {size_bytes} bytes"
                    raise _refused("content-length", what)
                await asyncio.to_thread(file.flush)
                # Unlike a rename, a link never replaces a file that has been checked or sealed.
                await asyncio.to_thread(path.hardlink_to, written)
            except FileExistsError as used:
                raise _used() from used
            finally:
                # A partial file is deleted even if the client disconnects.
                await asyncio.to_thread(written.unlink)

    def _read(self, token: str) -> _Permit:
        stated, _, signature = token.partition(".")
        if hmac.compare_digest(signature.encode(), self._signature(stated).encode()):
            content = base64.urlsafe_b64decode(stated + "=" * (-len(stated) % 4))
            permit = msgspec.json.decode(content, type=_Permit)
            if permit.expires_s > self._clock.now_s():
                return permit
        raise AccessError(
            ErrorCode.PERMISSION_DENIED, "The address is not signed by this host or has expired."
        )

    def _signature(self, stated: str) -> str:
        return hmac.digest(self._secret, stated.encode(), "sha256").hex()


def _used() -> AccessError:
    return AccessError(
        ErrorCode.PERMISSION_DENIED, "The address has been used; announce the file again."
    )


def _refused(field: str, what: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"{field}: {what}.", param=field)
