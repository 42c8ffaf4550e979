"""Plugins in routing.yaml, which change a request before a model gets it."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Final, Literal

from msgspec import Struct
from pydantic import Field, StringConstraints

from tollgate.routing.prompt_use_sections import EngineUseSection
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
    """An OCR service: its URL, credentials and input."""

    base_url: str | None
    """Public URL; None for an AWS service, whose URL depends on the region."""
    aws_service: str | None
    """Name of the AWS service for which requests are signed; None for a service with a key and
    models.
    """
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
    """Price in dollars per PDF page that the gateway reads, depending on how the page is sent."""

    text: Dollars = Decimal(0)
    """Price of a page that is sent as text only."""
    images: Dollars = Decimal(0)
    """Price of a page that is sent as text with an image."""


class OcrPriceSection(Strict):
    """Price of OCR per page, and its source."""

    page: Dollars
    """Price in dollars for OCR of one page."""
    source: Sentence
    """Web page on which the price is published."""
    checked: Day
    """Day on which the source was read."""


class OcrSection(EngineUseSection):
    """OCR of scanned pages by a paid service, for models without image input."""

    engine: OcrEngine
    """OCR service."""
    model: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = None
    """The service's name for the model, if it has several."""
    region: Region | None = None
    """AWS region of `textract`; defaults to the stack's region."""
    base_url: BaseUrl | None = None
    """URL of the service; defaults to its public URL."""
    private: Private = None
    key: KeySection | None = None
    """Key for the service."""
    price: OcrPriceSection
    """Price per page of OCR, charged instead of the page's `text` price."""
    pages_max: Annotated[int, Field(ge=1, le=1_000)] = 50
    """Maximum number of pages for OCR in one request; a request with more is refused."""
    text_bytes_max: Annotated[int, Field(ge=1_000, le=100_000)] = 12_000
    """Maximum text per page, in bytes; the rest is cut off."""
    timeout_s: RunSeconds = 60.0
    """Time limit for one document, in seconds."""

    @property
    def service(self) -> OcrService:
        """The OCR service named by `engine`."""
        return OCR_SERVICES[self.engine]

    @property
    def address(self) -> str | None:
        """URL of the service; None for an AWS service."""
        return self.service.base_url if self.base_url is None else self.base_url

    @property
    def sends_credentials(self) -> bool:
        """Always True: every service gets either a key or a signature by the role."""
        return True


class PdfSection(Strict):
    """Settings for reading documents, for endpoints that cannot read them themselves."""

    engine: Literal["text", "images"] = "images"
    """`images` sends models with image input the text and an image of each page; `text` sends them
    images only of pages without text. Other models always get text only.
    """
    pages_max: Annotated[int, Field(ge=1, le=1_000)] = 100
    """Maximum number of pages in a PDF; a PDF with more is refused."""
    price: PagePricesSection
    """Price per page, depending on whether the model receives it as text or with an image."""
    ocr: OcrSection | None = None
    """OCR of scanned pages; without it, scans need a model with image input."""


class PluginsSection(Strict):
    """Plugins that requests may use."""

    pdf: PdfSection | None = None
    """Settings for reading documents in the gateway; without this section, only models that support
    documents can read them.
    """
