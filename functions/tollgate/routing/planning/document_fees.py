"""The fees for documents that the gateway reads, and the endpoints for which it does."""

from decimal import ROUND_CEILING, Decimal
from typing import Final

from tollgate.core.generation import Fee, ReadSize
from tollgate.providers.base import Target
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.plugin_sections import PdfSection

PAGE_ITEM: Final = "pdf_page"
_NANO_USD_PER_USD: Final = 1_000_000_000


def reads_for(target: Target, wanted: PlanningRequest) -> bool:
    """Return whether the gateway reads some document of a request that has one for an endpoint."""
    if not wanted.reads_documents:
        return False
    if wanted.documents is None:
        return "pdf" not in target.input
    return wanted.documents.always or not all(map(target.reads_file, wanted.documents.types))


def fee_max_nano_usd(target: Target, documents: ReadSize, section: PdfSection) -> int:
    """Return the most that the pages of a request cost at an endpoint that they are read for."""
    price = section.price
    each = max(price.text, price.images) if "image" in target.input else price.text
    exact = each * documents.pages * _NANO_USD_PER_USD
    # Each of two lines is rounded up by half a nano-dollar at most.
    return int(exact.to_integral_value(rounding=ROUND_CEILING)) + 1 if exact else 0


def page_fees(section: PdfSection, *, text: int, pictured: int) -> tuple[Fee, ...]:
    """Return the fees for pages that were sent as text, and as text with a picture."""
    rates: tuple[tuple[int, Decimal], ...] = (
        (text, section.price.text),
        (pictured, section.price.images),
    )
    return tuple(
        Fee(item=PAGE_ITEM, quantity=pages, usd_each=rate) for pages, rate in rates if pages
    )
