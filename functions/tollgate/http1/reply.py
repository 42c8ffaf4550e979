"""The reply to one request."""

from collections.abc import Callable, Mapping

from tollgate.http1.connection import Connection
from tollgate.http1.errors import BrokenReply, ReplyTooLong


class Reply:
    """A reply whose body is not read yet; header names are in lower case.

    The caller must call `close`, which keeps the connection if the body was read to its end.
    """

    __slots__ = ("_connection", "_release", "headers", "status")

    def __init__(self, connection: Connection, release: Callable[[Connection], object]) -> None:
        self._connection: Connection | None = connection
        self._release = release
        self.status: int = connection.status
        self.headers: Mapping[str, str] = connection.headers

    @property
    def content_type(self) -> str:
        """The media type of the body without its parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_read(self) -> bool:
        """True if the whole body was read."""
        return self._connection is None or self._connection.is_read

    async def read(self) -> bytes:
        """Return the next bytes of the body, b"" at its end; raise BrokenReply."""
        if self._connection is None:
            raise BrokenReply("the reply was closed")
        return await self._connection.read()

    async def read_all(self, bytes_max: int, take: Callable[[int], None] | None = None) -> bytes:
        """Return the whole body; raise BrokenReply, or ReplyTooLong for more than `bytes_max`.

        `take` gets the announced size before any byte is read, or else each size as it arrives; an
        exception that it raises ends the reading.
        """
        announced = int(self.headers.get("content-length", 0))
        if announced > bytes_max:
            raise ReplyTooLong("the reply is too long")
        if take is not None:
            take(announced)
        parts: list[bytes] = []
        size = 0
        while part := await self.read():
            size += len(part)
            if size > bytes_max:
                raise ReplyTooLong("the reply is too long")
            if take is not None and not announced:
                take(len(part))
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Release the connection; a repeated call does nothing."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._release(connection)
