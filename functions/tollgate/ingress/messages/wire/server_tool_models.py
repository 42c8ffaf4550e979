"""Models for server tools, as clients of the Messages API declare them.

https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool and
/web-fetch-tool (2026-11-22)
"""

import re
from typing import Annotated, Final

from pydantic import Field

from tollgate.core.content import ServerToolId
from tollgate.ingress.shared.wire.request_model import CacheControl, Json, Name, Wire
from tollgate.ingress.shared.wire.server_tool_fields import (
    ApproximateLocation,
    Domains,
    PagesMax,
    PdfEngine,
    ResultsMax,
    UsesMax,
)

# Anthropic's tool types end with a date.
_TYPE: Final = r"^(web_search|web_fetch)(_[0-9]{8})?$|^(datetime|image)$"
PDF: Final = "pdf"
_TOOLS: Final[dict[str, ServerToolId]] = {
    "web_search": "web_search",
    "web_fetch": "web_fetch",
    "datetime": "datetime",
    "image": "image",
}


def tool_of_type(type_: str) -> ServerToolId | None:
    """Return the server tool for a type; None if the gateway does not run that type."""
    match = re.match(_TYPE, type_)
    return _TOOLS[match[1] or match[3]] if match else None


class ServerToolType(Wire):
    """A server tool; it is refused if routing.yaml does not configure it."""

    type: Annotated[str, Field(pattern=f"{_TYPE}|^{PDF}$")]
    name: Name | None = None
    max_uses: UsesMax | None = None
    max_results: ResultsMax | None = Field(
        default=None, description="Maximum number of results per search."
    )
    allowed_domains: Domains | None = None
    blocked_domains: Domains | None = None
    user_location: ApproximateLocation | None = None
    engine: PdfEngine | None = Field(default=None, description="For `pdf`.")
    pages_max: PagesMax | None = Field(
        default=None, description="For `pdf`: maximum number of pages per document."
    )
    citations: Json | None = Field(
        default=None, description="Has no effect: answers always have citations."
    )
    cache_control: CacheControl | None = Field(default=None, description="Has no effect.")
