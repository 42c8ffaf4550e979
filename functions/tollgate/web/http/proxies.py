"""Recognition of requests that a proxy has forwarded."""

from collections.abc import Container
from typing import Final

# Headers that proxies add to requests, whose sender then is not the caller.
_FORWARDED: Final = ("forwarded", "via", "x-forwarded-for", "x-real-ip")


def is_forwarded(headers: Container[str]) -> bool:
    """Return whether a request states that a proxy has forwarded it."""
    return any(name in headers for name in _FORWARDED)
