"""Parses the options of the gateway's tools, in the spellings that client formats share."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tollgate.core.content import ServerToolId
from tollgate.core.documents.options import DocumentOptions
from tollgate.core.server_tools import ServerTool, UserLocation
from tollgate.ingress.shared.media import field_refusal
from tollgate.ingress.shared.wire.server_tool_fields import (
    ApproximateLocation,
    SearchContextSize,
)

# OpenAI says how much context a search may fill; without a word routing.yaml decides.
_RESULTS: Final[Mapping[SearchContextSize, int]] = {"low": 3, "high": 10}


def parse_location(stated: ApproximateLocation | None) -> UserLocation | None:
    """Return the place of the user, None if none of it is stated."""
    if stated is None:
        return None
    location = UserLocation(
        city=stated.city,
        region=stated.region,
        country=stated.country.upper() if stated.country else None,
        timezone=stated.timezone,
    )
    return None if location == UserLocation() else location


def parse_domains(*lists: list[str] | None) -> tuple[str, ...]:
    """Return the domains of all lists, in lower case and each once."""
    return tuple(dict.fromkeys(domain.lower() for each in lists for domain in each or ()))


def results_of(size: SearchContextSize | None) -> int | None:
    """Return the results of a search for an amount of context."""
    return None if size is None else _RESULTS.get(size)


def require_one_reading(readings: Sequence[DocumentOptions]) -> DocumentOptions | None:
    """Return the options of reading documents, if any; RequestError if they come twice."""
    if len(readings) > 1:
        first, second, *_ = readings
        raise field_refusal(second.field, f"must not switch pdf on again: {first.field} does")
    return readings[0] if readings else None


def require_each_once(tools: Iterable[ServerTool]) -> tuple[ServerTool, ...]:
    """Return the tools; raise RequestError at the field of one that was switched on before."""
    once: dict[ServerToolId, ServerTool] = {}
    for tool in tools:
        if tool.id in once:
            raise field_refusal(
                tool.field, f"must not switch {tool.id} on again: {once[tool.id].field} does"
            )
        once[tool.id] = tool
    return tuple(once.values())
