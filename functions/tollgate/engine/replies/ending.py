"""Headers that announce the end of a model: RFC 9745, RFC 8594, RFC 5829."""

from datetime import UTC, datetime
from math import inf
from typing import Final

from tollgate.core.routing.endpoint_status import Lifecycle

# The format of RFC 9110, 5.6.7. Names are in English because the process sets no locale.
_HTTP_DATE: Final = "%a, %d %b %Y %H:%M:%S GMT"


def ending_headers(ending: Lifecycle) -> dict[str, str]:
    """Return `Deprecation`, `Sunset`, and a `Link` to the successor, each if it is known."""
    headers = {}
    if ending.deprecated_s != inf:
        headers["deprecation"] = f"@{int(ending.deprecated_s)}"
    if ending.retires_s != inf:
        headers["sunset"] = datetime.fromtimestamp(ending.retires_s, UTC).strftime(_HTTP_DATE)
    if ending.successor is not None:
        headers["link"] = f'</v1/models/{ending.successor}>; rel="successor-version"'
    return headers
