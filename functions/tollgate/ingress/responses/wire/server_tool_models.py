"""Models for server tools, as clients of the Responses API declare them.

https://platform.openai.com/docs/guides/tools-web-search (2026-11-22)
"""

from typing import Any, Final, Literal, get_args

from pydantic import Field

from tollgate.core.content import ServerToolId
from tollgate.ingress.shared.wire.request_model import Wire
from tollgate.ingress.shared.wire.server_tool_fields import (
    ApproximateLocation,
    Domains,
    PagesMax,
    PdfEngine,
    ResultsMax,
    SearchContextSize,
    UsesMax,
)

_Type = Literal[
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
    "web_fetch",
    "datetime",
    "image",
    "image_generation",
    "pdf",
]
SERVER_TOOL_TYPES: Final[frozenset[str]] = frozenset(get_args(_Type))


def tool_of_type(type_: str) -> ServerToolId | None:
    """Return the server tool for a type; None if the gateway does not run that type."""
    if type_ not in SERVER_TOOL_TYPES:
        return None
    match type_:
        case "web_fetch" | "datetime" | "image":
            return type_
        case "image_generation":
            return "image"
        case _:
            return "web_search" if type_.startswith("web_search") else None


class SearchFilters(Wire):
    """The domains that may or must not be searched or fetched, including subdomains."""

    allowed_domains: Domains | None = None
    blocked_domains: Domains | None = None


class ServerToolType(Wire):
    """A server tool; it is dropped if routing.yaml does not configure it."""

    type: _Type
    filters: SearchFilters | None = None
    user_location: ApproximateLocation | None = None
    search_context_size: SearchContextSize | None = None
    max_results: ResultsMax | None = Field(
        default=None, description="Maximum number of results per search."
    )
    max_uses: UsesMax | None = None
    external_web_access: bool | None = Field(
        default=None, description="False drops the tool, because search needs the web."
    )
    engine: PdfEngine | None = Field(default=None, description="For `pdf`.")
    pages_max: PagesMax | None = Field(
        default=None, description="For `pdf`: maximum number of pages per document."
    )
    events: Any = Field(default=None, description="Has no effect: every stream has events.")
