"""Parses server tool options that several client formats share."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tollgate.core.content import ServerToolId
from tollgate.core.documents.reading import DocumentOptions
from tollgate.core.server_tools import ServerTool, UserLocation
from tollgate.ingress.shared.media import field_refusal
from tollgate.ingress.shared.wire.server_tool_fields import (
    ApproximateLocation,
    SearchContextSize,
)

# The number of search results for each of OpenAI's context sizes; for any other size, routing.yaml
# sets the number.
_RESULTS: Final[Mapping[SearchContextSize, int]] = {"low": 3, "high": 10}


def parse_location(fields: ApproximateLocation | None) -> UserLocation | None:
    """Return the user's location; None if every field is missing."""
    if fields is None:
        return None
    location = UserLocation(
        city=fields.city,
        region=fields.region,
        country=fields.country.upper() if fields.country else None,
        timezone=fields.timezone,
    )
    return None if location == UserLocation() else location


def parse_domains(*lists: list[str] | None) -> tuple[str, ...]:
    """Return the domains of all lists in lower case, without duplicates."""
    return tuple(dict.fromkeys(domain.lower() for domains in lists for domain in domains or ()))


def results_of(size: SearchContextSize | None) -> int | None:
    """Return the number of search results for a context size; None for the default."""
    return None if size is None else _RESULTS.get(size)


def require_one_reading(readings: Sequence[DocumentOptions]) -> DocumentOptions | None:
    """Return the options for reading documents; raise RequestError if there are several."""
    if len(readings) > 1:
        first, second, *_ = readings
        raise field_refusal(second.field, f"must not enable pdf again after {first.field}")
    return readings[0] if readings else None


def require_each_once(tools: Iterable[ServerTool]) -> tuple[ServerTool, ...]:
    """Return the tools; raise RequestError if a tool is enabled twice."""
    once: dict[ServerToolId, ServerTool] = {}
    for tool in tools:
        if tool.id in once:
            raise field_refusal(
                tool.field, f"must not enable {tool.id} again after {once[tool.id].field}"
            )
        once[tool.id] = tool
    return tuple(once.values())
