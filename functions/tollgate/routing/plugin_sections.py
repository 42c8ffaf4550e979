"""The plugins of routing.yaml: what the gateway does with a request before a model sees it."""

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
    Region,
    RunSeconds,
    Sentence,
    Strict,
)

OcrEngine = Literal["mistral", "textract"]


class OcrService(Struct, frozen=True, kw_only=True):
    """A service that recognizes text, its way in, and the form in which it reads pages."""

    base_url: str | None
    """The public address; None for a service of AWS, which has one in each region."""
    aws_service: str | None
    """The name for which the role signs its requests; None for a service with a key and models."""
    reads_pictures: bool
    """True if it gets a picture of each page in place of the file."""

    @property
    def has_key(self) -> bool:
        """True if it takes a key, and the name of a model."""
        return self.aws_service is None


OCR_SERVICES: Final[Mapping[OcrEngine, OcrService]] = {
    "mistral": OcrService(
        base_url="https://api.mistral.ai", aws_service=None, reads_pictures=False
    ),
    "textract": OcrService(base_url=None, aws_service="textract", reads_pictures=True),
}


class PagePricesSection(Strict):
    """Dollars for each page of a PDF that the gateway reads, by the way of reading."""

    text: Dollars = Field(default=Decimal(0), description="A page that is sent as its text.")
    images: Dollars = Field(
        default=Decimal(0), description="A page that is sent as its text and a picture."
    )


class OcrPriceSection(Strict):
    """The price of a recognized page, and its source."""

    page: Dollars = Field(description="Per page that is recognized.")
    source: Sentence = Field(description="Page that publishes the price.")
    checked: Day = Field(description="Day on which the source was read.")


class OcrSection(Strict):
    """Recognition of scanned pages by a paid service, for models that do not see."""

    engine: OcrEngine = Field(description="Service that recognizes.")
    model: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = Field(
        default=None, description="The service's own name of its model, if it has several."
    )
    region: Region | None = Field(
        default=None, description="AWS region of `textract`; the stack's own if it is left out."
    )
    base_url: BaseUrl | None = Field(
        default=None, description="Address of the service; its public one if it is left out."
    )
    private: bool | None = Field(
        default=None,
        description="Whether `base_url` is in a network of your own, where a key may go by http.",
    )
    key: KeySection | None = Field(default=None, description="Key for the service.")
    price: OcrPriceSection = Field(description="Price of a page, in place of its `text` price.")
    pages_max: Annotated[int, Field(ge=1, le=1_000)] = Field(
        default=50, description="Pages of one request that are recognized; more are refused."
    )
    text_bytes_max: Annotated[int, Field(ge=1_000, le=100_000)] = Field(
        default=12_000, description="Bytes of the text of a page, which is cut there."
    )
    timeout_s: RunSeconds = Field(default=60.0, description="Time for one document.")

    @property
    def service(self) -> OcrService:
        """The service of the engine."""
        return OCR_SERVICES[self.engine]

    @property
    def address(self) -> str | None:
        """The address of the service; None for AWS's own in the region."""
        return self.service.base_url if self.base_url is None else self.base_url

    @property
    def sends_credentials(self) -> bool:
        """True: every service has a key, or a signature of the role."""
        return True


class PdfSection(Strict):
    """Reading documents for models and providers that do not read them."""

    engine: Literal["text", "images"] = Field(
        default="images",
        description="`images` sends text and a picture of each page to models that see, `text` a "
        "picture only of a page without text. Models that do not see get text.",
    )
    pages_max: Annotated[int, Field(ge=1, le=1_000)] = Field(
        default=100, description="Pages of one PDF; a longer one is refused."
    )
    price: PagePricesSection = Field(description="Price of a page by the way of reading.")
    ocr: OcrSection | None = Field(
        default=None, description="Recognition of scans; without it, a model that sees is needed."
    )


class PluginsSection(Strict):
    """The plugins that requests may use."""

    pdf: PdfSection | None = Field(
        default=None, description="Reading documents; without it, models read their own."
    )
