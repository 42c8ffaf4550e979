"""Plugins in routing.yaml, which change a request before it is sent to a model."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Final, Literal

from msgspec import Struct
from pydantic import Field, StringConstraints

from tollgate.routing.scalars import (
    BaseUrl,
    Day,
    Dollars,
    KeySection,
    Private,
    Region,
    RunSeconds,
    Sentence,
    Strict,
)

OcrEngine = Literal["mistral", "textract"]


class OcrService(Struct, frozen=True, kw_only=True):
    """OCR service: its address, credentials and input."""

    base_url: str | None
    """Public address; None for an AWS service, whose address depends on the region."""
    aws_service: str | None
    """Name of the AWS service for signed requests; None for a service with a key and models."""
    reads_pictures: bool
    """True if the service gets an image of each page instead of the file."""

    @property
    def has_key(self) -> bool:
        """True if the service needs a key and a model name."""
        return self.aws_service is None


OCR_SERVICES: Final[Mapping[OcrEngine, OcrService]] = {
    "mistral": OcrService(
        base_url="https://api.mistral.ai", aws_service=None, reads_pictures=False
    ),
    "textract": OcrService(base_url=None, aws_service="textract", reads_pictures=True),
}


class PagePricesSection(Strict):
    """Price in dollars of each PDF page that the gateway reads: sent as text, or with its image."""

    text: Dollars = Decimal(0)
    """Price of a page that is sent as text."""
    images: Dollars = Decimal(0)
    """Price of a page that is sent as text and image."""


class OcrPriceSection(Strict):
    """Price per page of OCR, and its source."""

    page: Dollars
    """Price in dollars per page of OCR."""
    source: Sentence
    """Web page with the price."""
    checked: Day
    """Day on which the source was read."""


class OcrSection(Strict):
    """OCR of scanned pages by a paid service, for models without image input."""

    engine: OcrEngine
    """OCR service."""
    model: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = None
    """Name of the model at the service, if there are several."""
    region: Region | None = None
    """AWS region of `textract`; defaults to the stack's region."""
    base_url: BaseUrl | None = None
    """Address of the service; defaults to its public address."""
    private: Private = None
    key: KeySection | None = None
    """Key for the service."""
    price: OcrPriceSection
    """Price per page of OCR, charged instead of its `text` price."""
    pages_max: Annotated[int, Field(ge=1, le=1_000)] = 50
    """Maximum number of pages for OCR in one request; requests with more are refused."""
    text_bytes_max: Annotated[int, Field(ge=1_000, le=100_000)] = 12_000
    """Maximum text per page in bytes; the rest is cut off."""
    timeout_s: RunSeconds = 60.0
    """Time limit for one document, in seconds."""

    @property
    def service(self) -> OcrService:
        """OCR service that `engine` names."""
        return OCR_SERVICES[self.engine]

    @property
    def address(self) -> str | None:
        """Address of the service; None for an AWS service."""
        return self.service.base_url if self.base_url is None else self.base_url

    @property
    def sends_credentials(self) -> bool:
        """Always True: each service gets a key, or a signature by the role."""
        return True


class PdfSection(Strict):
    """Settings for reading documents on behalf of endpoints that cannot read documents."""

    engine: Literal["text", "images"] = "images"
    """`images` sends text and an image of each page to models with image input; `text` sends images
    only of pages without text. Other models always get text."""
    pages_max: Annotated[int, Field(ge=1, le=1_000)] = 100
    """Maximum number of pages in a PDF; a longer PDF is refused."""
    price: PagePricesSection
    """Price per page, by the form that the model gets."""
    ocr: OcrSection | None = None
    """OCR of scanned pages; without OCR, scans need a model with image input."""


class PluginsSection(Strict):
    """Plugins that requests may use."""

    pdf: PdfSection | None = None
    """Settings for reading documents; without this section, only models read documents."""
