"""Pictures that the tool `image` asks models of the catalog for: attempts, bill and bound."""

import asyncio
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.gateways import House
from tests.painters import BY_PICTURE, BY_TOKENS, DRAWN, home_of_painters, whole
from tests.scripted import Silence, frame, refuses
from tests.virtual_time import LoopClock
from tollgate.core.clock import DAY_S
from tollgate.core.content import InlineMedia, MediaUrl
from tollgate.core.errors import AccessError
from tollgate.core.work.images import ImageRequest
from tollgate.engine.work.inner_calls import InnerCalls
from tollgate.engine.work.painter import CatalogPainter
from tollgate.tools.ports.base import Painted, RunFailure

READ = {
    "input_tokens": 8,
    "input_tokens_details": {"text_tokens": 8, "image_tokens": 0},
    "output_tokens": 400,
    "total_tokens": 408,
}
WORK = ImageRequest(model="acme/paint", prompt="a cat")


def painter_of(home: House) -> CatalogPainter:
    gateway = home.gateway
    calls = InnerCalls(
        planner=gateway.planner,
        providers=gateway.providers,
        clock=gateway.clock,
        ids=gateway.ids,
        when_s=gateway.clock.now_s(),
    )
    return CatalogPainter(calls=calls)


async def painted(home: House, timeout_s: float = 60) -> Painted:
    return await painter_of(home).paint(WORK, home.principal, timeout_s=timeout_s)


def cost_nano_usd(made: Painted) -> int:
    return sum(int(fee.usd_each * fee.quantity * 1_000_000_000) for fee in made.fees)


async def test_a_picture_is_made_and_billed_by_its_models_price() -> None:
    home = await home_of_painters([whole()], rates=BY_PICTURE)
    made = await painted(home)
    (picture,) = made.images
    assert picture.source == InlineMedia(media_type="image/png", base64=DRAWN)
    assert [(fee.item, fee.quantity, fee.usd_each) for fee in made.fees] == [
        ("image_model_image", 1, Decimal("0.02"))
    ]
    most = painter_of(home).fees_max_nano_usd(WORK, home.principal)
    assert cost_nano_usd(made) <= most


async def test_a_picture_costs_what_it_was_held_at_though_its_price_has_risen_since() -> None:
    tomorrow = datetime.fromtimestamp(LoopClock().now_s() + DAY_S, UTC).date()
    dearer = {"when": {"from": tomorrow}, "price": {"image": Decimal("0.05")}}
    home = await home_of_painters([whole()], rates=BY_PICTURE, overrides=(dearer,))
    painter = painter_of(home)
    most = painter.fees_max_nano_usd(WORK, home.principal)

    await asyncio.sleep(DAY_S)
    made = await painter.paint(WORK, home.principal, timeout_s=60)

    assert cost_nano_usd(made) == 20_000_000 <= most
    assert painter_of(home).fees_max_nano_usd(WORK, home.principal) > most


async def test_each_line_of_the_models_bill_is_a_fee_that_costs_the_same() -> None:
    home = await home_of_painters([whole(usage=READ)], rates=BY_TOKENS, dialect={"tokens": True})
    made = await painted(home)
    assert [(fee.item, fee.quantity) for fee in made.fees] == [
        ("image_model_input", 8),
        ("image_model_output_image", 400),
    ]
    assert cost_nano_usd(made) == 8 * 5_000 + 400 * 30_000


async def test_a_picture_behind_an_address_stays_there() -> None:
    address = {"url": "https://pictures.example/1.png"}
    home = await home_of_painters([frame({"created": 1, "data": [address]})])
    (picture,) = (await painted(home)).images
    assert picture.source == MediaUrl(url="https://pictures.example/1.png")


async def test_another_endpoint_paints_where_the_first_one_fails() -> None:
    home = await home_of_painters(refuses(503), refuses(503), refuses(503), far=[whole()])
    assert len((await painted(home)).images) == 1
    assert len(home.far.requests) == 1


async def test_no_picture_is_a_failed_tool() -> None:
    home = await home_of_painters(refuses(400))
    with pytest.raises(RunFailure, match="no image could be generated") as failure:
        await painted(home)
    assert failure.value.fault == "unavailable"


async def test_a_picture_that_takes_too_long_is_a_failed_tool() -> None:
    home = await home_of_painters([Silence(500), whole()])
    with pytest.raises(RunFailure, match="not generated in time"):
        await painted(home, timeout_s=5)


async def test_a_key_that_may_not_use_the_model_gets_no_picture_by_the_tool() -> None:
    home = await home_of_painters([whole()])
    narrow = replace(home.principal, models=("other/*",))
    with pytest.raises(AccessError):
        painter_of(home).fees_max_nano_usd(WORK, narrow)
    with pytest.raises(RunFailure):
        await painter_of(home).paint(WORK, narrow, timeout_s=5)
