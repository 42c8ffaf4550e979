"""Failures of a request over HTTP/1.1, by what may have become of it.

HttpError
├── InvalidRequest     nothing was sent: its URL or a header cannot be written down
├── CannotConnect      nothing was sent: no server, no name, no trusted certificate
│   └── ConnectTimedOut
├── ConnectionLost     the request may have been read; no byte of a reply came
└── BrokenReply        a reply began, and is invalid or cut
    └── ReplyTooLong
"""


class HttpError(Exception):
    """A request that got no whole reply; the text names no address and quotes no reply."""


class InvalidRequest(HttpError):
    """A request that cannot be sent as it is."""


class CannotConnect(HttpError):
    """No connection could be made."""


class ConnectTimedOut(CannotConnect):
    """No connection could be made in time."""


class ConnectionLost(HttpError):
    """The connection ended before the first byte of a reply; the server may have read it all."""


class BrokenReply(HttpError):
    """A reply that began and cannot be read to its end."""


class ReplyTooLong(BrokenReply):
    """A body with more bytes than its reader takes."""
