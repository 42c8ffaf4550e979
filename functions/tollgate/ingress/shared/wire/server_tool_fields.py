"""Models for server tool options that several client formats share."""

from typing import Annotated, Final, Literal

from pydantic import Field

from tollgate.ingress.shared.wire.request_model import Wire

DOMAINS_MAX: Final = 100
RESULTS_MAX: Final = 50
USES_MAX: Final = 100
# A host name with a dot, without scheme, port, path or wildcard; it includes its subdomains.
_DOMAIN: Final = (
    r"^(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\.){1,32}"
    r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$"
)

Domain = Annotated[str, Field(max_length=253, pattern=_DOMAIN)]
Domains = Annotated[list[Domain], Field(max_length=DOMAINS_MAX)]
ResultsMax = Annotated[int, Field(ge=1, le=RESULTS_MAX)]
UsesMax = Annotated[int, Field(ge=1, le=USES_MAX)]
SearchContextSize = Literal["low", "medium", "high"]
_PlaceName = Annotated[str, Field(min_length=1, max_length=256)]


PdfEngine = Literal["text", "images", "native", "ocr"]
PagesMax = Annotated[int, Field(ge=1, le=1_000)]


class ApproximateLocation(Wire):
    """The user's approximate location."""

    type: Literal["approximate"] = "approximate"
    city: _PlaceName | None = None
    region: _PlaceName | None = None
    country: Annotated[str, Field(pattern="^[A-Za-z]{2}$")] | None = Field(
        default=None, description="A two-letter ISO 3166-1 code."
    )
    timezone: Annotated[str, Field(max_length=64, pattern="^[A-Za-z0-9_+/-]+$")] | None = Field(
        default=None, description="A name in the IANA time zone database."
    )
