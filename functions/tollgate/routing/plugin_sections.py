"""Plugins of routing.yaml: what the gateway does to a request before a model gets it."""

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
    """Service that recognizes text: its address, credentials, and the form of its pages."""

    base_url: str | None
    """Public address; None for an AWS service, which has one in each region."""
    aws_service: str | None
    """AWS service name for signed requests; None for a service with a key and models."""
    reads_pictures: bool
    """True if the service gets a picture of each page instead of the file."""

    @property
    def has_key(self) -> bool:
        """True if the service needs a key and the name of a model."""
        return self.aws_service is None


OCR_SERVICES: Final[Mapping[OcrEngine, OcrService]] = {
    "mistral": OcrService(
        base_url="https://api.mistral.ai", aws_service=None, reads_pictures=False
    ),
    "textract": OcrService(base_url=None, aws_service="textract", reads_pictures=True),
}


class PagePricesSection(Strict):
    """Dollars per PDF page that the gateway reads, by the form in which it is sent."""

    text: Dollars = Field(default=Decimal(0), description="Page that is sent as text.")
    images: Dollars = Field(
        default=Decimal(0), description="Page that is sent as text and a picture."
    )


class OcrPriceSection(Strict):
    """Price of a recognized page, and its source."""

    page: Dollars = Field(description="Dollars per recognized page.")
    source: Sentence = Field(description="Page that publishes the price.")
    checked: Day = Field(description="Day on which the source was read.")


class OcrSection(Strict):
    """Recognition of scanned pages by a paid service, for models without image input."""

    engine: OcrEngine = Field(description="Service that recognizes.")
    model: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = Field(
        default=None, description="Model name at the service, if it has several."
    )
    region: Region | None = Field(
        default=None, description="AWS region of `textract`; defaults to the stack's region."
    )
    base_url: BaseUrl | None = Field(
        default=None, description="Address of the service; defaults to its public address."
    )
    private: Private = None
    key: KeySection | None = Field(default=None, description="Key for the service.")
    price: OcrPriceSection = Field(
        description="Price of a recognized page, charged instead of its `text` price."
    )
    pages_max: Annotated[int, Field(ge=1, le=1_000)] = Field(
        default=50, description="Most pages to recognize in one request; more are refused."
    )
    text_bytes_max: Annotated[int, Field(ge=1_000, le=100_000)] = Field(
        default=12_000, description="Most bytes of text from one page; the rest is cut off."
    )
    timeout_s: RunSeconds = Field(default=60.0, description="Time for one document.")

    @property
    def service(self) -> OcrService:
        """Service of the engine."""
        return OCR_SERVICES[self.engine]

    @property
    def address(self) -> str | None:
        """Address of the service; None for the AWS address in the region."""
        return self.service.base_url if self.base_url is None else self.base_url

    @property
    def sends_credentials(self) -> bool:
        """True, since each service gets a key or a signature by the role."""
        return True


class PdfSection(Strict):
    """Reading of documents for models and providers that do not read them."""

    engine: Literal["text", "images"] = Field(
        default="images",
        description="`images` sends text and a picture of each page to models with image "
        "input; `text` sends "
        "a picture only of pages without text. Other models always get text.",
    )
    pages_max: Annotated[int, Field(ge=1, le=1_000)] = Field(
        default=100, description="Most pages of one PDF; a longer PDF is refused."
    )
    price: PagePricesSection = Field(description="Price of a page by the form in which it is sent.")
    ocr: OcrSection | None = Field(
        default=None,
        description="Recognition of scans; without it, scans need a model with image input.",
    )


class PluginsSection(Strict):
    """Plugins that requests may use."""

    pdf: PdfSection | None = Field(
        default=None, description="Reading of documents; without it, only models read documents."
    )
