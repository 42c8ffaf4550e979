"""File contents in S3. The aioboto3 library signs URLs and uploads in parts.

aioboto3 is imported at the first call, so that other routes of the same function start without it.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Any, Final
from urllib.parse import quote

from tollgate.aws.failures import StoreRejected, StoreUnavailable
from tollgate.aws.objects import ObjectHead
from tollgate.aws.sigv4 import Credentials
from tollgate.core.clock import Clock
from tollgate.core.files.stored import UPLOAD_S, FileDownload, SignedUpload
from tollgate.stores.files.contents import SourceRange, cut_into_pieces

# Seconds for which a download URL is valid. S3 checks the expiry only when the download begins.
DOWNLOAD_S: Final = 300
_CONNECT_TIMEOUT_S: Final = 2
_READ_TIMEOUT_S: Final = 20
_ATTEMPTS_MAX: Final = 3
# Maximum number of pieces in memory while files are joined.
_PIECES_AT_ONCE: Final = 4


class BucketFiles:
    """Implements `stores.files.contents.FileContents`.

    S3 encrypts the objects with the bucket's default key. Without `credentials`, the library uses
    the credentials of the function's role.
    """

    def __init__(
        self,
        bucket: str,
        region: str,
        *,
        clock: Clock,
        credentials: Credentials | None = None,
        endpoint_url: str | None = None,
    ) -> None:
        self._bucket = bucket
        self._region = region
        self._clock = clock
        self._credentials = credentials
        self._endpoint_url = endpoint_url
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()
        self._client: Any = None

    async def put(self, key: str, content: bytes, media_type: str) -> None:
        client = await self._open()
        with _failing_as_store("PutObject"):
            await client.put_object(
                Bucket=self._bucket, Key=key, Body=content, ContentType=media_type
            )

    async def delete(self, key: str) -> None:
        client = await self._open()
        with _failing_as_store("DeleteObject"):
            await client.delete_object(Bucket=self._bucket, Key=key)

    async def download(self, key: str, *, filename: str, media_type: str) -> FileDownload | None:
        client = await self._open()
        with _failing_as_store("GetObject"):
            url = await client.generate_presigned_url(
                "get_object",
                Params={
                    "Bucket": self._bucket,
                    "Key": key,
                    # Makes a browser save the file instead of rendering it as a page of the
                    # bucket's host.
                    "ResponseContentDisposition": f"attachment; filename*=UTF-8''{quote(filename)}",
                    "ResponseContentType": media_type,
                },
                ExpiresIn=DOWNLOAD_S,
            )
        return FileDownload(url=url)

    async def sign_upload(
        self, key: str, *, size_bytes: int, media_type: str
    ) -> SignedUpload | None:
        client = await self._open()
        with _failing_as_store("PutObject"):
            url = await client.generate_presigned_url(
                "put_object",
                Params={
                    "Bucket": self._bucket,
                    "Key": key,
                    "ContentLength": size_bytes,
                    "ContentType": media_type,
                    # The first upload is the only one: the object stays, sealed, until the address
                    # has expired.
                    "IfNoneMatch": "*",
                },
                ExpiresIn=UPLOAD_S,
            )
        return SignedUpload(
            url=url,
            headers={
                "content-length": str(size_bytes),
                "content-type": media_type,
                "if-none-match": "*",
            },
            expires_s=int(self._clock.now_s()) + UPLOAD_S,
        )

    async def get_head(self, key: str, bytes_max: int) -> ObjectHead | None:
        client = await self._open()
        try:
            with _failing_as_store("GetObject"):
                reply = await client.get_object(
                    Bucket=self._bucket, Key=key, Range=f"bytes=0-{bytes_max - 1}"
                )
                async with reply["Body"] as body:
                    head = await body.read()
        except StoreRejected as rejected:
            # S3 replies InvalidRange for an empty object.
            if rejected.code in ("NoSuchKey", "404", "InvalidRange", "416"):
                return None
            raise
        size_bytes = int(reply["ContentRange"].rpartition("/")[2])
        return ObjectHead(size_bytes=size_bytes, head=head, etag=reply["ETag"])

    async def get_range(self, key: str, start: int, length: int) -> bytes:
        client = await self._open()
        with _failing_as_store("GetObject"):
            reply = await client.get_object(
                Bucket=self._bucket, Key=key, Range=f"bytes={start}-{start + length - 1}"
            )
            async with reply["Body"] as body:
                return bytes(await body.read())

    async def join(
        self,
        sources: Sequence[tuple[str, int]],
        to: str,
        media_type: str,
        *,
        observe: Callable[[bytes], None],
    ) -> None:
        # The bucket deletes the parts of an unfinished multipart upload after a day.
        client = await self._open()
        target = {"Bucket": self._bucket, "Key": to}
        with _failing_as_store("CreateMultipartUpload"):
            upload = await client.create_multipart_upload(**target, ContentType=media_type)
            target["UploadId"] = upload["UploadId"]
        pieces = list(enumerate(cut_into_pieces(sources), 1))
        parts: list[dict[str, object]] = []
        for first in range(0, len(pieces), _PIECES_AT_ONCE):
            window = pieces[first : first + _PIECES_AT_ONCE]
            contents = await asyncio.gather(*(self._read(ranges) for _, ranges in window))
            for content in contents:
                observe(content)
            with _failing_as_store("UploadPart"):
                uploaded = await asyncio.gather(
                    *(
                        client.upload_part(**target, PartNumber=number, Body=content)
                        for (number, _), content in zip(window, contents, strict=True)
                    )
                )
            parts += [
                {"PartNumber": number, "ETag": part["ETag"]}
                for (number, _), part in zip(window, uploaded, strict=True)
            ]
        with _failing_as_store("CompleteMultipartUpload"):
            await client.complete_multipart_upload(**target, MultipartUpload={"Parts": parts})

    async def _read(self, ranges: Sequence[SourceRange]) -> bytes:
        """Return the bytes of one piece, which may consist of several ranges."""
        read = (self.get_range(source.key, source.start, source.length) for source in ranges)
        return b"".join(await asyncio.gather(*read))

    async def delete_all(self, keys: Sequence[str]) -> None:
        client = await self._open()
        with _failing_as_store("DeleteObjects"):
            await client.delete_objects(
                Bucket=self._bucket,
                Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True},
            )

    async def copy(self, key: str, to: str, media_type: str, *, etag: str) -> bool:
        client = await self._open()
        try:
            with _failing_as_store("CopyObject"):
                await client.copy_object(
                    Bucket=self._bucket,
                    Key=to,
                    CopySource={"Bucket": self._bucket, "Key": key},
                    CopySourceIfMatch=etag,
                    ContentType=media_type,
                    MetadataDirective="REPLACE",
                )
        except StoreRejected as rejected:
            if rejected.code in ("NoSuchKey", "404", "PreconditionFailed", "412"):
                return False
            raise
        return True

    async def seal(self, key: str) -> None:
        await self.put(key, b"", "application/octet-stream")

    async def close(self) -> None:
        await self._stack.aclose()
        self._client = None

    async def _open(self) -> Any:
        """Return the client, which is opened in the event loop that uses it."""
        async with self._opening:
            if self._client is None:
                self._client = await self._stack.enter_async_context(self._new_client())
            return self._client

    def _new_client(self) -> Any:
        # Importing aioboto3 takes half a second, so it is imported when a bucket is first used.
        import aioboto3  # type: ignore[import-untyped]  # it and botocore ship no types
        from botocore.config import Config  # type: ignore[import-untyped]

        own = self._credentials
        session = aioboto3.Session(
            aws_access_key_id=own.access_key_id if own else None,
            aws_secret_access_key=own.secret_access_key if own else None,
            aws_session_token=own.session_token if own else None,
            region_name=self._region,
        )
        return session.client(
            "s3",
            endpoint_url=self._endpoint_url,
            config=Config(
                signature_version="s3v4",
                s3={"addressing_style": "path" if self._endpoint_url else "virtual"},
                connect_timeout=_CONNECT_TIMEOUT_S,
                read_timeout=_READ_TIMEOUT_S,
                retries={"mode": "standard", "total_max_attempts": _ATTEMPTS_MAX},
                # TLS and the signature already protect the content, and a trailing checksum would
                # require chunked transfer.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )


@contextmanager
def _failing_as_store(operation: str) -> Iterator[None]:
    """Convert the library's errors to store errors within a `with` block."""
    # botocore is already loaded, because the client imported it at its first use.
    from botocore.exceptions import (  # type: ignore[import-untyped]
        BotoCoreError,
        ClientError,
    )

    try:
        yield
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        code = str(error.response["Error"]["Code"])
        if status >= 500 or status == 429:
            raise StoreUnavailable(f"{operation}: {code}", maybe_applied=True) from error
        raise StoreRejected(code, operation) from error
    except BotoCoreError as error:
        name = type(error).__name__
        raise StoreUnavailable(f"{operation}: {name}", maybe_applied=True) from error
