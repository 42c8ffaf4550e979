"""Parses the options of the gateway's tools, in the notations that client formats share."""

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

# Results of a search by OpenAI's amount of context; for `medium`, or none, routing.yaml decides.
_RESULTS: Final[Mapping[SearchContextSize, int]] = {"low": 3, "high": 10}


def parse_location(stated: ApproximateLocation | None) -> UserLocation | None:
    """Return the user's location; None if no field of the location is stated."""
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
    return tuple(dict.fromkeys(domain.lower() for domains in lists for domain in domains or ()))


def results_of(size: SearchContextSize | None) -> int | None:
    """Return the number of search results for an amount of context; None for the default."""
    return None if size is None else _RESULTS.get(size)


def require_one_reading(readings: Sequence[DocumentOptions]) -> DocumentOptions | None:
    """Return the only options of reading documents; raise RequestError if there are several."""
    if len(readings) > 1:
        first, second, *_ = readings
        raise field_refusal(second.field, f"must not switch on pdf again after {first.field}")
    return readings[0] if readings else None


def require_each_once(tools: Iterable[ServerTool]) -> tuple[ServerTool, ...]:
    """Return the tools; raise RequestError with the field that switches a tool on again."""
    once: dict[ServerToolId, ServerTool] = {}
    for tool in tools:
        if tool.id in once:
            raise field_refusal(
                tool.field, f"must not switch on {tool.id} again after {once[tool.id].field}"
            )
        once[tool.id] = tool
    return tuple(once.values())
