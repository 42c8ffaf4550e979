"""C65, C81, C82: bills by unit, recomputed from what the record and the catalog say.

Keeps C65, C66, C81, C82.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateways import Always
from tests.recomputed import PARTS, UNITS, find_wrong_bill, recompute_lines
from tests.works import CASES, WorkCase, home_of
from tollgate.core.usage import PIECES, Usage
from tollgate.routing.price import Price, bill
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

counts = st.none() | st.integers(0, 1_000_000)
rates = st.none() | st.decimals(min_value=0, max_value=1000, places=9)
RATES = sorted({rate for _, rate, _ in UNITS.values()} | PARTS.keys())
CLASSES = ("uncached_input_tokens", "output_tokens", *(f"{part}_tokens" for part in PARTS))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_c65_c81_c82_a_bill_by_unit_is_recomputed_from_its_record(case: WorkCase) -> None:
    home = await home_of(case)
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    reply = await case.ask(home.secret).run(app)
    assert (reply.status, reply.complete) == (200, True), reply.body
    record = home.record
    assert find_wrong_bill(record, home.catalog) is None
    assert (record.trace.kind, record.usage_source) == (case.kind, "provider")
    assert record.cost_nano_usd == home.spent_nano_usd == case.cost_nano_usd


def test_each_unit_is_recomputed() -> None:
    assert set(UNITS) == set(PIECES)


@given(
    usage=st.fixed_dictionaries(dict.fromkeys((*PIECES, *CLASSES), counts)),
    prices=st.fixed_dictionaries(dict.fromkeys(RATES, rates)),
    tokens=st.tuples(*[st.decimals(min_value=0, max_value=1000, places=9)] * 2),
)
def test_c65_any_usage_is_billed_as_it_is_recomputed(
    usage: dict[str, int | None], prices: dict[str, object], tokens: tuple[object, object]
) -> None:
    price = Price(input=tokens[0], output=tokens[1], **prices)  # type: ignore[arg-type]
    used = Usage(**usage)
    lines = {line.item: line.cost_nano_usd for line in bill(used, price)}
    assert lines == recompute_lines(used, price)
