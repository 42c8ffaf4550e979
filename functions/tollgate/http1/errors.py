"""Failures of an HTTP/1.1 request, by how far the request may have got.

HttpError
├── InvalidRequest     nothing was sent: the URL or a header cannot be encoded
├── ForbiddenUrl       nothing was sent: the URL leads where strangers may not send requests
├── CannotConnect      nothing was sent: no server, no name, no trusted certificate
│   └── ConnectTimedOut
├── ConnectionLost     the request may have been read; no byte of a reply arrived
├── TimedOut           the request may have been read; no whole reply arrived in time
├── UnusableReply      a reply arrived that its reader cannot use
└── BrokenReply        a reply began, and is invalid or truncated
    └── ReplyTooLong
"""


class HttpError(Exception):
    """A request got no whole reply; the message names no address and quotes no reply."""


class InvalidRequest(HttpError):
    """A request that cannot be sent as it is."""


class ForbiddenUrl(HttpError):
    """A stranger's URL is not fetched; the message ends a sentence that begins with the URL."""


class CannotConnect(HttpError):
    """No connection could be made."""


class ConnectTimedOut(CannotConnect):
    """No connection could be made in time."""


class ConnectionLost(HttpError):
    """The connection ended before a reply began; the server may have read the whole request."""


class TimedOut(HttpError):
    """No whole reply arrived in time."""


class UnusableReply(HttpError):
    """A reply is not what was wanted; the message ends a sentence that begins with the URL."""


class BrokenReply(HttpError):
    """A reply began, but cannot be read to its end."""


class ReplyTooLong(BrokenReply):
    """A body has more bytes than its reader accepts."""
