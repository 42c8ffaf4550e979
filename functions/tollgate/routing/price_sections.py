"""The prices of routing.yaml: rates with their source, and the overrides that replace them."""

from datetime import UTC, date, datetime, time
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
)


class PriceSection(Strict):
    """Rates in dollars, and their source. A class of tokens without a rate is never free."""

    input: Dollars = Field(description="Per million tokens of the prompt.")
    output: Dollars = Field(
        default=Decimal(0),
        description="Per million tokens of the answer; required for chat, and for no other kind.",
    )
    cache_read: Dollars | None = Field(
        default=None, description="Per million cached tokens; `input` if it is left out."
    )
    cache_write: Dollars | None = Field(
        default=None, description="Per million tokens cached for 5 minutes; else `input`."
    )
    cache_write_1h: Dollars | None = Field(
        default=None, description="Per million tokens cached for an hour; else `input`."
    )
    audio_input: Dollars | None = Field(
        default=None, description="Per million tokens of audio in the prompt; else `input`."
    )
    audio_output: Dollars | None = Field(
        default=None, description="Per million tokens of audio in the answer; else `output`."
    )
    cache_read_audio: Dollars | None = Field(
        default=None, description="Per million cached tokens of audio; else `cache_read`."
    )
    request: Dollars | None = Field(default=None, description="Per request.")
    image_input: Dollars | None = Field(
        default=None, description="Per million tokens of images in the prompt; else `input`."
    )
    image_output: Dollars | None = Field(
        default=None, description="Per million tokens of images in the answer; else `output`."
    )
    image: Dollars | None = Field(
        default=None,
        description="Per image made or judged, beside its tokens; overrides have other sizes and "
        "qualities.",
    )
    audio_hour: Dollars | None = Field(
        default=None, description="Per hour of sound that is read, billed by the second."
    )
    characters: Dollars | None = Field(
        default=None, description="Per million characters of text that is spoken."
    )
    text_units: Dollars | None = Field(
        default=None,
        description="Per thousand units of 1,000 characters that a guardrail reads, all its "
        "policies together.",
    )
    web_search: Dollars | None = Field(
        default=None, description="Per search that the provider runs by itself."
    )
    search: Dollars | None = Field(
        default=None, description="Per unit of search, for the kind rerank."
    )
    source: Sentence = Field(description="Page or package that publishes the price.")
    checked: Day = Field(description="Day on which the source was read.")

    @property
    def price(self) -> Price:
        """The rates as the bill takes them."""
        return Price(**{name: getattr(self, name) for name in Price.__struct_fields__})


Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: Final[tuple[Weekday, ...]] = get_args(Weekday)


def _in_order(days: tuple[Weekday, ...]) -> tuple[Weekday, ...]:
    """Sort days from Monday on, each once: spelling must not change the catalog's hash."""
    return tuple(day for day in WEEKDAYS if day in days)


class WhenSection(Strict, json_schema_extra={"minProperties": 1}):
    """The conditions of an override, all of which must hold."""

    since: Day | None = Field(
        default=None, alias="from", description="UTC day from whose first second on it holds."
    )
    until: Day | None = Field(default=None, description="UTC day before which it holds.")
    prompt_tokens_over: Tokens | None = Field(
        default=None, description="Size that the whole prompt exceeds, cached tokens included."
    )
    utc_window: UtcWindow | None = Field(
        default=None, description="Minutes of the day such as 16:30-00:30, the last not included."
    )
    utc_days: (
        Annotated[tuple[Weekday, ...], Field(min_length=1), AfterValidator(_in_order)] | None
    ) = Field(
        default=None,
        description="Days of the week; a window over midnight is of the day on which it begins.",
    )
    image_size: ImageSize | None = Field(
        default=None, description="Size that a request for images states, such as 1024x1024."
    )
    image_over: ImageSize | None = Field(
        default=None, description="Size than which stated images are wider or higher."
    )
    image_quality: Slug | None = Field(
        default=None, description="Quality that a request for images states."
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
    """The rates that an override replaces, by the names and units of `price`."""

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
    """Other rates under conditions; of several that hold, the last one wins, rate by rate."""

    when: WhenSection
    price: RatesSection

    @property
    def override(self) -> PriceOverride:
        """The override as the bill takes it."""
        window, days = self.when.utc_window, self.when.utc_days
        return PriceOverride(
            since_s=_midnight_s(self.when.since),
            until_s=_midnight_s(self.when.until),
            prompt_tokens_over=self.when.prompt_tokens_over,
            utc_minutes=(_minute(window[:5]), _minute(window[6:])) if window else None,
            utc_weekdays=None if days is None else frozenset(map(WEEKDAYS.index, days)),
            image_size=self.when.image_size,
            image_over=sides(self.when.image_over or ""),
            image_quality=self.when.image_quality,
            rates={name: rate for name, rate in self.price if rate is not None},
        )


def _midnight_s(day: date | None) -> int | None:
    return None if day is None else int(datetime.combine(day, time(), UTC).timestamp())


def _minute(clock: str) -> int:
    return int(clock[:2]) * 60 + int(clock[3:])
