"""Prices in routing.yaml: rates with their source, and overrides that replace rates."""

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
    """Rates in dollars, and their source. A token class without a rate is not free."""

    input: Dollars
    """Price per million prompt tokens."""
    output: Dollars = Decimal(0)
    """Price per million output tokens; required for models of kind `chat`."""
    cache_read: Dollars | None = None
    """Per million cached tokens; defaults to `input`."""
    cache_write: Dollars | None = None
    """Per million tokens written to a 5-minute cache; defaults to `input`."""
    cache_write_1h: Dollars | None = None
    """Per million tokens written to a 1-hour cache; defaults to `input`."""
    audio_input: Dollars | None = None
    """Per million audio tokens in the prompt; defaults to `input`."""
    audio_output: Dollars | None = None
    """Per million audio tokens in the output; defaults to `output`."""
    cache_read_audio: Dollars | None = None
    """Per million cached audio tokens; defaults to `cache_read`."""
    request: Dollars | None = None
    """Price per request."""
    image_input: Dollars | None = None
    """Per million image tokens in the prompt; defaults to `input`."""
    image_output: Dollars | None = None
    """Per million image tokens in the output; defaults to `output`."""
    image: Dollars | None = None
    """Price per generated or moderated image, in addition to its tokens. Overrides may depend on
    size and quality.
    """
    audio_hour: Dollars | None = None
    """Per hour of audio input, billed by the second."""
    characters: Dollars | None = None
    """Per million characters of spoken text."""
    text_units: Dollars | None = None
    """Price per thousand units of 1,000 characters that a guardrail reads; the sum over its
    policies.
    """
    video_second: Dollars | None = None
    """Price per second of generated video. Overrides may depend on the size."""
    web_search: Dollars | None = None
    """Price per web search that the provider runs itself."""
    search: Dollars | None = None
    """Per search unit, for models of kind `rerank`."""
    source: Sentence
    """Web page or package in which the price is published."""
    checked: Day
    """Day on which the source was last read."""

    @property
    def price(self) -> Price:
        """Return the rates in the type that bills use."""
        return Price(**{name: getattr(self, name) for name in Price.__struct_fields__})


Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: Final[tuple[Weekday, ...]] = get_args(Weekday)


def _in_order(days: tuple[Weekday, ...]) -> tuple[Weekday, ...]:
    """Return unique days, sorted from Monday, so that their order does not affect the hash."""
    return tuple(day for day in WEEKDAYS if day in days)


class WhenSection(Strict, json_schema_extra={"minProperties": 1}):
    """Conditions of an override, all of which must hold."""

    since: Day | None = Field(default=None, alias="from")
    """First UTC day on which the override applies."""
    until: Day | None = None
    """First UTC day on which the override no longer applies."""
    prompt_tokens_over: Tokens | None = None
    """The override applies only to prompts with more than this many tokens, including
    cached ones.
    """
    utc_window: UtcWindow | None = None
    """Time of day in UTC, such as 16:30-00:30; the end is not included."""
    utc_days: (
        Annotated[tuple[Weekday, ...], Field(min_length=1), AfterValidator(_in_order)] | None
    ) = None
    """Days of the week in UTC. A window that spans midnight belongs to the day on which
    it begins.
    """
    image_size: ImageSize | None = None
    """Size that a request for an image or a video must ask for, such as 1024x1024."""
    image_over: ImageSize | None = None
    """The override applies only to images and videos that are wider or higher than this."""
    image_quality: Slug | None = None
    """Quality that an image request must ask for."""

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
    """Rates that an override replaces, with the same names and units as in `price`."""

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
    video_second: Dollars | None = None
    web_search: Dollars | None = None
    search: Dollars | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self == _NO_RATES:
            raise ValueError("must name a rate")
        return self


_NO_RATES: Final = RatesSection.model_construct()


class OverrideSection(Strict):
    """Rates that apply under conditions. If several overrides apply, the last one wins for each
    rate.
    """

    when: WhenSection
    price: RatesSection

    @property
    def override(self) -> PriceOverride:
        """Return the override in the type that bills use."""
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
