"""What is charged beside tokens: pages of documents, runs of tools.

Keeps C65, C66.
"""

from decimal import Decimal

from tests.unit.engine.test_meter import COMPLETE, meter
from tollgate.core.errors import InternalError
from tollgate.core.events import Ended, UsageReported
from tollgate.core.records.generation import Fee
from tollgate.web.records.generation_shapes import GenerationObject

PAGES = Fee(item="pdf_page", quantity=3, usd_each=Decimal("0.002"))
SEARCH = Fee(item="web_search", quantity=1, usd_each=Decimal("0.008"))


def test_c65_each_fee_is_a_line_of_the_bill_and_items_are_shown_added_up() -> None:
    made = meter()
    for fee in (PAGES, SEARCH, SEARCH):
        made.charge(fee)
    made.observe(UsageReported(usage=COMPLETE))
    made.observe(Ended(finish="stop"))

    record = made.record()

    charged = [(line.item, line.quantity, line.cost_nano_usd) for line in record.lines[2:]]
    assert charged == [
        ("pdf_page", 3, 6_000_000),
        ("web_search", 1, 8_000_000),
        ("web_search", 1, 8_000_000),
    ]
    # 10 at $3 and 2 at $15 a million.
    assert record.cost_nano_usd == made.cost_nano_usd() == 30_000 + 30_000 + 22_000_000
    shown = GenerationObject.of(record)
    assert shown.tool_costs_micro_usd == {"pdf_page": "6000.000", "web_search": "16000.000"}


def test_c66_fees_are_paid_by_a_caller_who_left_and_not_for_an_error() -> None:
    made = meter(serving=False)
    made.charge(PAGES)
    left = made.record()
    made.fail(InternalError())
    failed = made.record()

    assert (left.outcome, left.cost_nano_usd) == ("cancelled", 6_000_000)
    assert (failed.outcome, failed.cost_nano_usd, failed.lines) == ("error", 0, ())
