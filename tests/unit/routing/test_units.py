"""C81: prices by the piece: pictures by size and quality, seconds of sound, characters."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollgate.core.records.generation import total_nano_usd
from tollgate.core.usage import PIECES, Units, Usage
from tollgate.core.work.pictures import Picture, sides
from tollgate.routing.price import Price, PriceOverride, PriceSchedule, bill, cost_max_nano_usd

FREE = Price(input=Decimal(0), output=Decimal(0))
NO_TOKENS = Usage(uncached_input_tokens=0, output_tokens=0)
DAY_S = 86_400


def priced(**rates: str) -> Price:
    return Price(
        **{"input": Decimal(0), "output": Decimal(0)}
        | {name: Decimal(rate) for name, rate in rates.items()}
    )


@pytest.mark.parametrize(
    ("rates", "usage", "item", "nano_usd"),
    [
        # An hour and a second at $0.04 per hour: a rate without an end in any other unit.
        ({"audio_hour": "0.04"}, {"audio_seconds": 3_601}, "audio_second", 40_011_111),
        ({"audio_hour": "0.36"}, {"audio_seconds": 60}, "audio_second", 6_000_000),
        ({"characters": "15"}, {"characters": 4_096}, "character", 61_440_000),
        ({"image": "0.04"}, {"images": 3}, "image", 120_000_000),
        ({"search": "0.002"}, {"search_units": 2}, "search", 4_000_000),
        ({"text_units": "0.40"}, {"text_units": 3}, "text_unit", 1_200_000),
        ({"video_second": "0.10"}, {"video_seconds": 8}, "video_second", 800_000_000),
    ],
)
def test_c81_a_piece_is_a_line_of_its_own(
    rates: dict[str, str], usage: dict[str, int], item: str, nano_usd: int
) -> None:
    (line,) = bill(Usage(uncached_input_tokens=0, output_tokens=0, **usage), priced(**rates))
    assert (line.item, line.quantity, line.cost_nano_usd) == (item, *usage.values(), nano_usd)


def test_c81_tokens_of_images_are_a_part_with_their_own_rate() -> None:
    usage = Usage(
        uncached_input_tokens=100, image_input_tokens=60, output_tokens=50, image_output_tokens=90
    )
    lines = bill(usage, priced(input="5", image_input="10", output="1", image_output="40"))
    assert [(line.item, line.quantity) for line in lines] == [
        ("input", 40),
        ("input_image", 60),
        # A part is never more than its whole.
        ("output_image", 50),
    ]


def test_c81_tokens_of_images_without_a_rate_are_billed_as_any() -> None:
    usage = Usage(uncached_input_tokens=9, image_input_tokens=9, output_tokens=0)
    assert [(line.item, line.quantity) for line in bill(usage, priced(input="5"))] == [("input", 9)]


BY_FORM = PriceSchedule(
    base=priced(image="0.04"),
    overrides=(
        PriceOverride(rates={"image": Decimal("0.06")}, image_over=(1024, 1024)),
        PriceOverride(rates={"image": Decimal("0.08")}, image_quality="hd"),
        PriceOverride(
            rates={"image": Decimal("0.12")}, image_quality="hd", image_over=(1024, 1024)
        ),
        PriceOverride(rates={"image": Decimal("0.01")}, image_size="256x256"),
        PriceOverride(
            rates={"image": Decimal("0.02")},
            image_size="256x256",
            since_s=DAY_S,
            image_quality="hd",
        ),
    ),
)


@pytest.mark.parametrize(
    ("picture", "when_s", "usd"),
    [
        (None, 0, "0.04"),
        (Picture(), 0, "0.04"),
        (Picture(size="1024x1024"), 0, "0.04"),
        (Picture(size="1024x1536"), 0, "0.06"),
        (Picture(size="1536x1024"), 0, "0.06"),
        (Picture(size="512x512", quality="hd"), 0, "0.08"),
        (Picture(quality="hd"), 0, "0.08"),
        (Picture(size="2048x2048", quality="hd"), 0, "0.12"),
        (Picture(size="256x256", quality="hd"), 0, "0.01"),
        (Picture(size="256x256", quality="hd"), DAY_S, "0.02"),
        (Picture(size="auto", quality="auto"), 0, "0.04"),
    ],
)
def test_c81_an_image_costs_what_its_size_and_quality_cost_that_day(
    picture: Picture | None, when_s: int, usd: str
) -> None:
    assert BY_FORM.at(when_s, 0, picture).image == Decimal(usd)
    held = BY_FORM.cost_max_nano_usd(when_s, 0, 0, units_max=Units(images=10), picture=picture)
    assert held == Decimal(usd) * 10 * 1_000_000_000 + 6


@pytest.mark.parametrize("word", ["", "auto", "1024", "x", "1024x", "x1024", "1024x1024x2", "-1x5"])
def test_c81_other_words_are_no_size(word: str) -> None:
    assert sides(word) is None


counts = st.integers(0, 1_000_000)
rates = st.none() | st.decimals(min_value=0, max_value=1000, places=9)


@given(
    units=st.fixed_dictionaries(dict.fromkeys(PIECES, counts)),
    own_rates=st.fixed_dictionaries(
        dict.fromkeys(
            ("image", "search", "audio_hour", "characters", "text_units", "video_second"), rates
        )
    ),
)
def test_c62_c81_no_bill_of_pieces_exceeds_what_is_held(
    units: dict[str, int], own_rates: dict[str, Decimal | None]
) -> None:
    price = Price(input=Decimal(0), output=Decimal(0), **own_rates)
    lines = bill(Usage(uncached_input_tokens=0, output_tokens=0, **units), price)
    assert total_nano_usd(lines) <= cost_max_nano_usd(0, 0, price, Units(**units))


def test_c62_c81_every_line_may_be_rounded_up_within_the_bound() -> None:
    # Each of the sixteen lines is half a nano-dollar.
    half = Decimal("0.0005")
    rates = dict.fromkeys(Price.__struct_fields__, half) | {
        "image": half / 1_000_000,
        "search": half / 1_000_000,
        "text_units": half / 1_000,
        "video_second": half / 1_000_000,
        "audio_hour": half * Decimal("0.0036"),
        "request": None,
        "web_search": None,
    }
    usage = Usage(
        uncached_input_tokens=3,
        audio_input_tokens=1,
        image_input_tokens=1,
        cache_read_input_tokens=2,
        cache_read_audio_input_tokens=1,
        cache_write_5m_input_tokens=1,
        cache_write_1h_input_tokens=1,
        output_tokens=3,
        audio_output_tokens=1,
        image_output_tokens=1,
        **dict.fromkeys(PIECES, 1),
    )
    lines = bill(usage, Price(**rates))
    assert [line.cost_nano_usd for line in lines] == [1] * 16
    units = Units(**dict.fromkeys(PIECES, 1))
    most = cost_max_nano_usd(usage.input_tokens, 3, Price(**rates), units)
    assert total_nano_usd(lines) <= most
