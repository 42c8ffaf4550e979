"""Labels that a caller sends about itself, read from requests as configured in routing.yaml.

Imported at the first request whose catalog reads such labels.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pydantic_core

from tollgate.ingress.base import ParsedWork

# A label becomes part of the key of a stored item, so it may not contain `#` or look like an unset
# label.
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+=-]{0,63}")


def find_stated_labels(
    sources: Mapping[str, str], headers: Mapping[str, str], parsed: ParsedWork
) -> dict[str, str]:
    """Return the labels in a request; labels that are not plain short text are skipped."""
    return {
        name: label
        for name, source in sources.items()
        if (label := _find(source, headers, parsed)) is not None and _LABEL.fullmatch(label)
    }


def _find(source: str, headers: Mapping[str, str], parsed: ParsedWork) -> str | None:
    kind, _, wanted = source.partition(":")
    if kind == "header":
        return headers.get(wanted)
    for stated in _metadata(parsed):
        value = stated.get(wanted)
        if isinstance(value, str):
            return value
    return None


def _metadata(parsed: ParsedWork) -> Iterator[Mapping[str, Any]]:
    """Yield the objects that may contain labels: the metadata, and the user id if it is a JSON
    object."""
    yield parsed.request.metadata
    yield parsed.client_metadata
    user = parsed.request.user or ""
    if user.startswith("{"):
        try:
            decoded = pydantic_core.from_json(user)
        except ValueError:
            return
        if isinstance(decoded, dict):
            yield decoded
