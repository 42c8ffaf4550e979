"""The room in a reply of the platform that is not streamed."""

from typing import Final

# "Lambda quotas": 6 MB (6,291,556 bytes), of which headers and what is around a body take the rest.
REPLY_BYTES_MAX: Final = 6_000_000


def size_in_reply(body: bytes) -> int:
    """Return the size of JSON as the platform counts it: as a text inside JSON."""
    return len(body) + body.count(b'"') + body.count(b"\\")
