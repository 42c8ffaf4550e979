"""The plugins of routing.yaml: what the gateway does with a request before a model sees it."""

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from tollgate.routing.scalars import Dollars, Strict


class PagePricesSection(Strict):
    """Dollars for each page of a PDF that the gateway reads, by the way of reading."""

    text: Dollars = Field(default=Decimal(0), description="A page that is sent as its text.")
    images: Dollars = Field(
        default=Decimal(0), description="A page that is sent as its text and a picture."
    )


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


class PluginsSection(Strict):
    """The plugins that requests may use."""

    pdf: PdfSection | None = Field(
        default=None, description="Reading documents; without it, models read their own."
    )
