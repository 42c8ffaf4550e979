"""Errors of an HTTP/1.1 request; each class tells how much the server may have read.

HttpError
├── InvalidRequest     nothing was sent: the URL or a header cannot be encoded
├── ForbiddenUrl       nothing was sent: the URL comes from outside and must not be fetched
├── CannotConnect      nothing was sent: no server reached, name unknown, or certificate not trusted
│   └── ConnectTimedOut
├── ConnectionLost     the request may have been read; no byte of a reply arrived
├── TimedOut           the request may have been read; no complete reply arrived in time
├── UnusableReply      a complete reply arrived, but cannot be used
└── BrokenReply        a reply began, and is invalid or truncated
    └── ReplyTooLong
"""


class HttpError(Exception):
    """Raised if a request got no usable, complete reply; the message contains no address and no
    part of a reply.
    """


class InvalidRequest(HttpError):
    """A request that cannot be encoded."""


class ForbiddenUrl(HttpError):
    """An untrusted URL that must not be fetched; the message completes "The URL …"."""


class CannotConnect(HttpError):
    """No connection could be made."""


class ConnectTimedOut(CannotConnect):
    """No connection could be made in time."""


class ConnectionLost(HttpError):
    """The connection ended before a reply began; the server may have read the whole request."""


class TimedOut(HttpError):
    """No complete reply arrived in time."""


class UnusableReply(HttpError):
    """A reply that cannot be used; the message completes "The URL …"."""


class BrokenReply(HttpError):
    """A reply that began, but is invalid or truncated."""


class ReplyTooLong(BrokenReply):
    """A body that exceeds the limit of its reader."""
