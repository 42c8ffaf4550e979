"""The maximum size of a reply that the platform does not stream."""

from typing import Final

# "Lambda quotas": 6 MB (6,291,556 bytes), less headers and the JSON around the body.
REPLY_BYTES_MAX: Final = 6_000_000


def size_in_reply(body: bytes) -> int:
    """Return the size of a JSON body as the platform counts it: as a string inside JSON."""
    return len(body) + body.count(b'"') + body.count(b"\\")
