"""Prices of routing.yaml: rates with their source, and overrides that replace rates."""

from decimal import Decimal
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import AfterValidator, Field, model_validator

from tollgate.core.work.pictures import sides
from tollgate.routing.price import Price, PriceOverride
from tollgate.routing.scalars import (
    Day,
    Dollars,
    ImageSize,
    Sentence,
    Slug,
    Strict,
    Tokens,
    UtcWindow,
    midnight_s,
)


class PriceSection(Strict):
    """Rates in dollars and their source; a class of tokens without a rate is never free."""

    input: Dollars = Field(description="Per million prompt tokens.")
    output: Dollars = Field(
        default=Decimal(0),
        description="Per million reply tokens; required for chat only.",
    )
    cache_read: Dollars | None = Field(
        default=None, description="Per million cached tokens; defaults to `input`."
    )
    cache_write: Dollars | None = Field(
        default=None,
        description="Per million tokens written to a 5-minute cache; defaults to `input`.",
    )
    cache_write_1h: Dollars | None = Field(
        default=None,
        description="Per million tokens written to a 1-hour cache; defaults to `input`.",
    )
    audio_input: Dollars | None = Field(
        default=None, description="Per million audio tokens in the prompt; defaults to `input`."
    )
    audio_output: Dollars | None = Field(
        default=None, description="Per million audio tokens in the reply; defaults to `output`."
    )
    cache_read_audio: Dollars | None = Field(
        default=None, description="Per million cached audio tokens; defaults to `cache_read`."
    )
    request: Dollars | None = Field(default=None, description="Per request.")
    image_input: Dollars | None = Field(
        default=None, description="Per million image tokens in the prompt; defaults to `input`."
    )
    image_output: Dollars | None = Field(
        default=None, description="Per million image tokens in the reply; defaults to `output`."
    )
    image: Dollars | None = Field(
        default=None,
        description="Per generated or moderated image, in addition to its tokens; "
        "overrides can set sizes and qualities.",
    )
    audio_hour: Dollars | None = Field(
        default=None, description="Per hour of audio input, billed by the second."
    )
    characters: Dollars | None = Field(
        default=None, description="Per million characters of spoken text."
    )
    text_units: Dollars | None = Field(
        default=None,
        description="Per thousand units of 1,000 characters that a guardrail reads; "
        "the sum of its policies' prices.",
    )
    web_search: Dollars | None = Field(
        default=None, description="Per web search that the provider runs."
    )
    search: Dollars | None = Field(default=None, description="Per search unit, for kind rerank.")
    source: Sentence = Field(description="Web page or package that publishes the price.")
    checked: Day = Field(description="Day on which somebody last read the source.")

    @property
    def price(self) -> Price:
        """Rates in the type that bills use."""
        return Price(**{name: getattr(self, name) for name in Price.__struct_fields__})


Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: Final[tuple[Weekday, ...]] = get_args(Weekday)


def _in_order(days: tuple[Weekday, ...]) -> tuple[Weekday, ...]:
    """Sort days from Monday without repeats, since spelling must not change the catalog's hash."""
    return tuple(day for day in WEEKDAYS if day in days)


class WhenSection(Strict, json_schema_extra={"minProperties": 1}):
    """Conditions of an override, all of which must hold."""

    since: Day | None = Field(
        default=None, alias="from", description="First UTC day of the override."
    )
    until: Day | None = Field(
        default=None, description="UTC day after the last day of the override."
    )
    prompt_tokens_over: Tokens | None = Field(
        default=None, description="Prompt tokens, cached ones included, that must be exceeded."
    )
    utc_window: UtcWindow | None = Field(
        default=None, description="Time of day such as 16:30-00:30; the end is not included."
    )
    utc_days: (
        Annotated[tuple[Weekday, ...], Field(min_length=1), AfterValidator(_in_order)] | None
    ) = Field(
        default=None,
        description="Days of the week; a window that spans midnight belongs to the day on "
        "which it begins.",
    )
    image_size: ImageSize | None = Field(
        default=None, description="Size that a request for images must state, such as 1024x1024."
    )
    image_over: ImageSize | None = Field(
        default=None, description="Size that stated images must exceed in width or height."
    )
    image_quality: Slug | None = Field(
        default=None, description="Quality that a request for images must state."
    )

    @model_validator(mode="after")
    def _can_happen(self) -> Self:
        if self == _NO_CONDITION:
            raise ValueError("must name a condition")
        if self.since and self.until and self.until <= self.since:
            raise ValueError(f"must begin before it ends on {self.until}")
        if self.utc_window and self.utc_window[:5] == self.utc_window[6:]:
            raise ValueError("must have a utc_window that ends at another minute than it begins")
        return self


_NO_CONDITION: Final = WhenSection.model_construct()


class RatesSection(Strict, json_schema_extra={"minProperties": 1}):
    """Rates that an override replaces, with the names and units of `price`."""

    input: Dollars | None = None
    output: Dollars | None = None
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None
    cache_write_1h: Dollars | None = None
    audio_input: Dollars | None = None
    audio_output: Dollars | None = None
    cache_read_audio: Dollars | None = None
    request: Dollars | None = None
    image_input: Dollars | None = None
    image_output: Dollars | None = None
    image: Dollars | None = None
    audio_hour: Dollars | None = None
    characters: Dollars | None = None
    text_units: Dollars | None = None
    web_search: Dollars | None = None
    search: Dollars | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self == _NO_RATES:
            raise ValueError("must name a rate")
        return self


_NO_RATES: Final = RatesSection.model_construct()


class OverrideSection(Strict):
    """Rates that apply under conditions; if several overrides hold, the last wins for each rate."""

    when: WhenSection
    price: RatesSection

    @property
    def override(self) -> PriceOverride:
        """Override in the type that bills use."""
        window, days = self.when.utc_window, self.when.utc_days
        return PriceOverride(
            since_s=midnight_s(self.when.since) if self.when.since else None,
            until_s=midnight_s(self.when.until) if self.when.until else None,
            prompt_tokens_over=self.when.prompt_tokens_over,
            utc_minutes=(_minute(window[:5]), _minute(window[6:])) if window else None,
            utc_weekdays=None if days is None else frozenset(map(WEEKDAYS.index, days)),
            image_size=self.when.image_size,
            image_over=sides(self.when.image_over or ""),
            image_quality=self.when.image_quality,
            rates={name: rate for name, rate in self.price if rate is not None},
        )


def _minute(clock: str) -> int:
    return int(clock[:2]) * 60 + int(clock[3:])
