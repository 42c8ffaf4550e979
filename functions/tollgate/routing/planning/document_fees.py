"""Computes the fees for documents that the gateway reads."""

from decimal import ROUND_CEILING, Decimal
from typing import Final

from tollgate.core.records.generation import Fee, ReadSize
from tollgate.providers.ports.base import Target
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.plugin_sections import PdfSection

PAGE_ITEM: Final = "pdf_page"
RECOGNIZED_PAGE_ITEM: Final = "pdf_page_ocr"
_NANO_USD_PER_USD: Final = 1_000_000_000


def reads_for(target: Target, request: PlanningRequest) -> bool:
    """Return True if the gateway reads any document of the request for this endpoint.

    The request must contain a document.
    """
    if not request.reads_documents:
        return False
    if request.documents is None:
        return "pdf" not in target.input
    return request.documents.always or not all(map(target.reads_file, request.documents.types))


def fee_max_nano_usd(target: Target, documents: ReadSize, section: PdfSection) -> int:
    """Return the maximum fee for a request's pages at an endpoint."""
    price = section.price
    each = max(price.text, price.images) if "image" in target.input else price.text
    recognized = section.ocr.price.page * documents.recognized if section.ocr else Decimal(0)
    exact = (each * documents.pages + recognized) * _NANO_USD_PER_USD
    # The bill has two or three lines, each of which is rounded up by at most half a nano-dollar.
    rounded = 2 if recognized else 1
    return int(exact.to_integral_value(rounding=ROUND_CEILING)) + rounded if exact else 0


def page_fees(
    section: PdfSection, *, text: int, pictured: int, recognized: int = 0
) -> tuple[Fee, ...]:
    """Return the fees for pages sent as text, for pages sent with an image, and for pages read by
    OCR.
    """
    rates: tuple[tuple[str, int, Decimal], ...] = (
        (PAGE_ITEM, text, section.price.text),
        (PAGE_ITEM, pictured, section.price.images),
        (RECOGNIZED_PAGE_ITEM, recognized, section.ocr.price.page if section.ocr else Decimal(0)),
    )
    return tuple(
        Fee(item=item, quantity=pages, usd_each=rate) for item, pages, rate in rates if pages
    )
