"""What routing.yaml may say of prices: rates, what replaces them when, and where they are from."""

from datetime import UTC, date, datetime, time
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import AfterValidator, Field, model_validator

from tollgate.routing.price import Price, PriceOverride
from tollgate.routing.scalars import Day, Dollars, Sentence, Strict, Tokens, UtcWindow


class PriceSection(Strict):
    """Dollars per million tokens, per request, picture and search, and where that was checked."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None
    cache_write_1h: Dollars | None = None
    audio_input: Dollars | None = None
    audio_output: Dollars | None = None
    cache_read_audio: Dollars | None = None
    request: Dollars | None = None
    image: Dollars | None = None
    web_search: Dollars | None = None
    source: Sentence
    checked: Day

    @property
    def price(self) -> Price:
        """The rates as the bill takes them."""
        return Price(**{name: getattr(self, name) for name in Price.__struct_fields__})


Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: Final[tuple[Weekday, ...]] = get_args(Weekday)


def _in_order(days: tuple[Weekday, ...]) -> tuple[Weekday, ...]:
    """From Monday on, each once, since a catalog is named by the hash of what it says."""
    return tuple(day for day in WEEKDAYS if day in days)


class WhenSection(Strict, json_schema_extra={"minProperties": 1}):
    """When an override holds: from a UTC day on, before a day, over a prompt, in hours of the day.

    All that is said must hold; hours over midnight are of the day on which they begin.
    """

    since: Day | None = Field(default=None, alias="from")
    until: Day | None = None
    prompt_tokens_over: Tokens | None = None
    utc_window: UtcWindow | None = None
    utc_days: (
        Annotated[tuple[Weekday, ...], Field(min_length=1), AfterValidator(_in_order)] | None
    ) = None

    @model_validator(mode="after")
    def _can_happen(self) -> Self:
        if self == _NEVER_SAID:
            raise ValueError("must say when")
        if self.since and self.until and self.until <= self.since:
            raise ValueError(f"must begin before it ends on {self.until}")
        if self.utc_window and self.utc_window[:5] == self.utc_window[6:]:
            raise ValueError("must have a utc_window that ends at another minute than it begins")
        return self


_NEVER_SAID: Final = WhenSection.model_construct()


class RatesSection(Strict, json_schema_extra={"minProperties": 1}):
    """The rates that an override replaces."""

    input: Dollars | None = None
    output: Dollars | None = None
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None
    cache_write_1h: Dollars | None = None
    audio_input: Dollars | None = None
    audio_output: Dollars | None = None
    cache_read_audio: Dollars | None = None
    request: Dollars | None = None
    image: Dollars | None = None
    web_search: Dollars | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self == _NO_RATES:
            raise ValueError("must name a rate")
        return self


_NO_RATES: Final = RatesSection.model_construct()


class OverrideSection(Strict):
    """Other rates for a time; of several that hold, the later one wins, rate by rate."""

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
            rates={name: rate for name, rate in self.price if rate is not None},
        )


def _midnight_s(day: date | None) -> int | None:
    return None if day is None else int(datetime.combine(day, time(), UTC).timestamp())


def _minute(clock: str) -> int:
    return int(clock[:2]) * 60 + int(clock[3:])
