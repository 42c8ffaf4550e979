"""Failures of a request over HTTP/1.1, by what may have become of it.

HttpError
├── InvalidRequest     nothing was sent: its URL or a header cannot be written down
├── ForbiddenUrl       nothing was sent: its URL leads where strangers may not send requests
├── CannotConnect      nothing was sent: no server, no name, no trusted certificate
│   └── ConnectTimedOut
├── ConnectionLost     the request may have been read; no byte of a reply came
├── TimedOut           the request may have been read; no whole reply came in time
├── UnusableReply      a reply came that its reader cannot use
└── BrokenReply        a reply began, and is invalid or cut
    └── ReplyTooLong
"""


class HttpError(Exception):
    """A request that got no whole reply; the text names no address and quotes no reply."""


class InvalidRequest(HttpError):
    """A request that cannot be sent as it is."""


class ForbiddenUrl(HttpError):
    """A URL of a stranger that is not fetched; the text ends a sentence that begins with it."""


class CannotConnect(HttpError):
    """No connection could be made."""


class ConnectTimedOut(CannotConnect):
    """No connection could be made in time."""


class ConnectionLost(HttpError):
    """The connection ended before the first byte of a reply; the server may have read it all."""


class TimedOut(HttpError):
    """A request without a whole reply in the time it has."""


class UnusableReply(HttpError):
    """A reply that is not what a URL was fetched for; the text is like that of ForbiddenUrl."""


class BrokenReply(HttpError):
    """A reply that began and cannot be read to its end."""


class ReplyTooLong(BrokenReply):
    """A body with more bytes than its reader takes."""
