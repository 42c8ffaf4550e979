"""Computes bills: one line per token class or fee, each rounded once."""

from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, Decimal
from operator import gt
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.money.amounts import cost_nano_usd
from tollgate.core.records.generation import BillLine, Fee
from tollgate.core.usage import Units, Usage
from tollgate.core.work.pictures import Picture, sides

# Items on the bill lines of the model itself; all other lines are for tools and pages.
MODEL_ITEMS: Final = frozenset(
    {
        "input",
        "input_audio",
        "input_image",
        "cache_read",
        "cache_read_audio",
        "cache_write_5m",
        "cache_write_1h",
        "output",
        "output_audio",
        "output_image",
        "image",
        "audio_second",
        "character",
        "text_unit",
        "video_second",
        "request",
        "provider_web_search",
        "search",
        "unpriced_web_search",
    }
)
# Items that a provider charges for but that have no price in the catalog, so the caller gets them
# for free.
UNPRICED_ITEMS: Final = frozenset({"unpriced_web_search"})
_DAY_MINUTES: Final = 1_440
# 1970-01-01 was a Thursday.
_EPOCH_WEEKDAY: Final = 3
_PIECES_PER_RATE: Final = Decimal(1_000_000)
_THOUSANDS_PER_RATE: Final = 1_000
_NANO_USD_PER_USD_PER_MILLION: Final = Decimal(1_000)
# Hours in a million seconds, with more digits than a rounded rate has.
_HOURS_PER_MILLION_SECONDS: Final = Decimal("277.777777777777777777777778")
# Rates per second are rounded so that a record can store them.
_RATE_STEP: Final = Decimal("1e-9")
# Each line of a bill may be rounded up by half a nano-dollar. There are at most ten lines for
# tokens, and one for each unit in `PIECES` that has a rate. Fees and searches are not counted here.
_ROUNDING_OF_TOKENS_NANO_USD: Final = Decimal(5)
_ROUNDING_OF_PIECE_NANO_USD: Final = Decimal("0.5")
_FREE: Final = Decimal(0)
_PERCENT: Final = Decimal("0.01")
_CACHED: Final = frozenset({"cache_read", "cache_read_audio"})
_ANSWER_UNITS_MAX: Final = Units(images=1)


class Price(Struct, frozen=True, kw_only=True):
    """Rates in dollars, per million tokens unless a field says otherwise.

    A token class without a rate (None) is not free: its field says which rate is used instead.
    """

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    """If this rate is not set, `input` applies."""
    cache_write: Decimal | None = None
    """If this rate is not set, `input` applies."""
    cache_write_1h: Decimal | None = None
    """If this rate is not set, `input` applies."""
    request: Decimal | None = None
    """Rate per request; requests are free if this is not set."""
    audio_input: Decimal | None = None
    """If this rate is not set, `input` applies."""
    audio_output: Decimal | None = None
    """If this rate is not set, `output` applies."""
    cache_read_audio: Decimal | None = None
    """If this rate is not set, `cache_read` applies."""
    image_input: Decimal | None = None
    """If this rate is not set, `input` applies."""
    image_output: Decimal | None = None
    """If this rate is not set, `output` applies."""
    image: Decimal | None = None
    """Rate per image generated or moderated; if it is not set, only the image's tokens
    are billed.
    """
    audio_hour: Decimal | None = None
    """Rate per hour of audio input, billed by the second; if it is not set, tokens are billed."""
    characters: Decimal | None = None
    """Rate per million characters spoken; if it is not set, tokens are billed."""
    text_units: Decimal | None = None
    """Rate per thousand units that a guardrail reads; free if it is not set."""
    video_second: Decimal | None = None
    """Rate per second of generated video."""
    web_search: Decimal | None = None
    """Rate per search by the provider; if it is not set, the bill has a line with a cost of 0."""

    search: Decimal | None = None
    """Rate per search unit of a reranker; free if it is not set."""

    @property
    def input_dearest(self) -> Decimal:
        """Highest rate for a prompt token."""
        rates = (
            self.input,
            self.cache_read,
            self.cache_write,
            self.cache_write_1h,
            self.audio_input,
            self.cache_read_audio,
            self.image_input,
        )
        return max(rate for rate in rates if rate is not None)

    @property
    def output_dearest(self) -> Decimal:
        """Highest rate for a reply token."""
        return max(self.output, self.audio_output or _FREE, self.image_output or _FREE)

    @property
    def usd_per_million_pieces(self) -> Mapping[str, tuple[str, Decimal]]:
        """Return the item and the rate of each unit in `PIECES` that has a rate."""
        rates: dict[str, tuple[str, Decimal]] = {}
        if self.image:
            rates["images"] = ("image", self.image * _PIECES_PER_RATE)
        if self.search:
            rates["search_units"] = ("search", self.search * _PIECES_PER_RATE)
        if self.audio_hour:
            by_second = (self.audio_hour * _HOURS_PER_MILLION_SECONDS).quantize(_RATE_STEP)
            rates["audio_seconds"] = ("audio_second", by_second.normalize())
        if self.characters:
            rates["characters"] = ("character", self.characters)
        if self.text_units:
            rates["text_units"] = ("text_unit", self.text_units * _THOUSANDS_PER_RATE)
        if self.video_second:
            rates["video_seconds"] = ("video_second", self.video_second * _PIECES_PER_RATE)
        return rates


class PriceOverride(Struct, frozen=True, kw_only=True):
    """Rates that replace the base rates while all conditions hold; a condition that is None always
    holds.

    The end of a period is not included. Hours that span midnight belong to the day on which they
    begin.
    """

    rates: Mapping[str, Decimal]
    """New rates, keyed by field name of `Price`."""
    since_s: int | None = None
    """Unix time from which the rates apply."""
    until_s: int | None = None
    """Unix time from which the rates no longer apply."""
    prompt_tokens_over: int | None = None
    utc_minutes: tuple[int, int] | None = None
    """The first minute of the day and the minute after the last one; the range may span
    midnight.
    """
    utc_weekdays: frozenset[int] | None = None
    """Days of the week; Monday is 0."""
    image_size: str | None = None
    """Width and height as given in the request."""
    image_over: tuple[int, int] | None = None
    """Width and height; the condition holds if the image exceeds at least one of them."""
    image_quality: str | None = None

    def holds_at(self, when_s: float) -> bool:
        """Return True if the time conditions hold."""
        if self.since_s is not None and when_s < self.since_s:
            return False
        if self.until_s is not None and when_s >= self.until_s:
            return False
        day, minute = divmod(int(when_s) // 60, _DAY_MINUTES)
        if self.utc_minutes is not None:
            start, end = self.utc_minutes
            if start > end and minute < end:
                # Hours after midnight belong to the day on which the period began.
                day -= 1
            elif not (start <= minute < end if start < end else start <= minute):
                return False
        return self.utc_weekdays is None or (day + _EPOCH_WEEKDAY) % 7 in self.utc_weekdays

    def holds_over(self, prompt_tokens: int) -> bool:
        """Return True if the condition on the prompt size holds."""
        return self.prompt_tokens_over is None or prompt_tokens > self.prompt_tokens_over

    def holds_for(self, picture: Picture | None) -> bool:
        """Return True if the image conditions hold. If the request gives no size, none of them
        holds.
        """
        if self.image_size is None and self.image_over is None and self.image_quality is None:
            return True
        if picture is None:
            return False
        size = sides(picture.size or "")
        return (
            self.image_size in (None, picture.size)
            and self.image_quality in (None, picture.quality)
            and (
                self.image_over is None
                or (size is not None and any(map(gt, size, self.image_over)))
            )
        )


class PriceSchedule(Struct, frozen=True, kw_only=True):
    """A price that may depend on the time, the prompt size, and the image size and quality."""

    base: Price
    overrides: tuple[PriceOverride, ...] = ()

    def at(self, when_s: float, prompt_tokens: int, picture: Picture | None = None) -> Price:
        """Return the rates for a request; if several overrides hold, the last one wins."""
        rates: dict[str, Decimal] = {}
        for override in self.overrides:
            if (
                override.holds_at(when_s)
                and override.holds_over(prompt_tokens)
                and override.holds_for(picture)
            ):
                rates |= override.rates
        return replace(self.base, **rates) if rates else self.base

    def possible(
        self, when_s: float, prompt_tokens_max: int, picture: Picture | None = None
    ) -> tuple[Price, ...]:
        """Return all prices that can apply to a prompt with up to `prompt_tokens_max` tokens."""
        if not self.overrides:
            return (self.base,)
        sizes = {0} | {
            override.prompt_tokens_over + 1
            for override in self.overrides
            if override.prompt_tokens_over is not None
            and override.prompt_tokens_over < prompt_tokens_max
        }
        return tuple(self.at(when_s, size, picture) for size in sorted(sizes))

    def scaled(self, percent: int, cached_percent: int | None = None) -> "PriceSchedule":
        """Return the schedule with all rates at a percentage; searches keep their rate.

        If `cached_percent` is set, it applies to cached tokens in place of `percent`.
        """
        factor = percent * _PERCENT
        cached = factor if cached_percent is None else cached_percent * _PERCENT
        base = {
            name: rate for name in Price.__struct_fields__ if (rate := getattr(self.base, name))
        }
        overrides = (
            replace(override, rates=_scale(override.rates, factor, cached))
            for override in self.overrides
        )
        return PriceSchedule(
            base=replace(self.base, **_scale(base, factor, cached)), overrides=tuple(overrides)
        )

    def cost_max_nano_usd(
        self,
        when_s: float,
        input_tokens_max: int,
        output_tokens_max: int,
        *,
        units_max: Units | None = None,
        picture: Picture | None = None,
    ) -> int:
        """Return the maximum cost of a choice with up to this many tokens."""
        return max(
            cost_max_nano_usd(input_tokens_max, output_tokens_max, price, units_max)
            for price in self.possible(when_s, input_tokens_max, picture)
        )


def _scale(
    rates: Mapping[str, Decimal], factor: Decimal, cached_factor: Decimal
) -> dict[str, Decimal]:
    return {
        name: rate
        if name == "web_search"
        else (rate * (cached_factor if name in _CACHED else factor)).normalize()
        for name, rate in rates.items()
    }


def bill(usage: Usage, price: Price, fees: Iterable[Fee] = ()) -> tuple[BillLine, ...]:
    """Return the bill for a reply, without lines for unreported or zero usage."""
    audio_input = audio_output = audio_read = 0
    if price.audio_input is not None:
        audio_input = _part(usage.audio_input_tokens, usage.uncached_input_tokens)
    if price.audio_output is not None:
        audio_output = _part(usage.audio_output_tokens, usage.output_tokens)
    if price.cache_read_audio is not None:
        audio_read = _part(usage.cache_read_audio_input_tokens, usage.cache_read_input_tokens)
    plain_input = (usage.uncached_input_tokens or 0) - audio_input
    plain_output = (usage.output_tokens or 0) - audio_output
    image_input = image_output = 0
    if price.image_input is not None:
        image_input = _part(usage.image_input_tokens, plain_input)
    if price.image_output is not None:
        image_output = _part(usage.image_output_tokens, plain_output)
    classes = (
        ("input", plain_input - image_input, price.input),
        ("input_audio", audio_input, price.audio_input),
        ("input_image", image_input, price.image_input),
        ("cache_read", (usage.cache_read_input_tokens or 0) - audio_read, price.cache_read),
        ("cache_read_audio", audio_read, price.cache_read_audio),
        ("cache_write_5m", usage.cache_write_5m_input_tokens, price.cache_write),
        ("cache_write_1h", usage.cache_write_1h_input_tokens, price.cache_write_1h),
        ("output", plain_output - image_output, price.output),
        ("output_audio", audio_output, price.audio_output),
        ("output_image", image_output, price.image_output),
    )
    lines = [
        _line(item, quantity, price.input if rate is None else rate)
        for item, quantity, rate in classes
        if quantity
    ]
    for unit, (item, rate) in price.usd_per_million_pieces.items():
        if quantity := getattr(usage, unit):
            lines.append(_line(item, quantity, rate))
    if price.request:
        lines.append(_fee_line(Fee(item="request", quantity=1, usd_each=price.request)))
    return (*lines, *bill_fees((_searches(usage, price), *fees)))


def bill_fees(fees: Iterable[Fee]) -> tuple[BillLine, ...]:
    """Return a line for each fee; even free tools have one, so that a bill shows each run."""
    return tuple(_fee_line(fee) for fee in fees if fee.quantity)


def _searches(usage: Usage, price: Price) -> Fee:
    """Return the fee for the provider's searches; if there is no rate, the line has a different
    item.
    """
    searches = usage.web_searches or 0
    if price.web_search is None:
        return Fee(item="unpriced_web_search", quantity=searches, usd_each=_FREE)
    return Fee(item="provider_web_search", quantity=searches, usd_each=price.web_search)


def cost_max_nano_usd(
    input_tokens_max: int, output_tokens_max: int, price: Price, units_max: Units | None = None
) -> int:
    """Return the maximum cost of a choice, whichever classes its tokens belong to.

    `units_max` is for input work; a choice in a conversation has at most one image. The provider's
    own searches are not included, because their number has no limit.
    """
    pieces = price.usd_per_million_pieces
    exact = (
        input_tokens_max * price.input_dearest
        + output_tokens_max * price.output_dearest
        + (price.request or _FREE) * _PIECES_PER_RATE
        + sum(
            getattr(units_max or _ANSWER_UNITS_MAX, unit) * rate
            for unit, (_, rate) in pieces.items()
        )
    ) * _NANO_USD_PER_USD_PER_MILLION
    rounding = _ROUNDING_OF_TOKENS_NANO_USD + len(pieces) * _ROUNDING_OF_PIECE_NANO_USD
    return int((exact + rounding).to_integral_value(rounding=ROUND_CEILING))


def _part(tokens: int | None, whole: int | None) -> int:
    """Return the tokens of a part, cut to `whole` because providers may report more."""
    return min(tokens or 0, whole or 0)


def _fee_line(fee: Fee) -> BillLine:
    return _line(fee.item, fee.quantity, fee.usd_each * _PIECES_PER_RATE)


def _line(item: str, quantity: int, usd_per_million: Decimal) -> BillLine:
    return BillLine(
        item=item,
        quantity=quantity,
        usd_per_million=usd_per_million,
        cost_nano_usd=cost_nano_usd(quantity, usd_per_million),
    )
