"""Usage reported by a provider, divided into classes of tokens with separate prices."""

from typing import Final

from msgspec import Struct
from msgspec.structs import asdict, replace

# A larger count must be a defect, since it would be a thousand times the largest context of any
# model.
COUNT_MAX: Final = 1_000_000_000


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens by class; None means that the provider reported nothing, which differs from zero.

    The uncached, cache-read and cache-write classes do not overlap: their sum is the whole prompt.
    """

    uncached_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_write_5m_input_tokens: int | None = None
    cache_write_1h_input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    """Part of `output_tokens`."""
    audio_input_tokens: int | None = None
    """Part of `uncached_input_tokens`."""
    cache_read_audio_input_tokens: int | None = None
    """Part of `cache_read_input_tokens`."""
    audio_output_tokens: int | None = None
    """Part of `output_tokens`."""
    image_input_tokens: int | None = None
    """Part of `uncached_input_tokens`."""
    image_output_tokens: int | None = None
    """Part of `output_tokens`."""
    images: int | None = None
    """Images that the model generated or moderated; not tokens."""
    web_searches: int | None = None
    """Searches that the provider ran itself; not tokens."""
    search_units: int | None = None
    """Search units that a reranker charges; not tokens."""
    audio_seconds: int | None = None
    """Seconds of audio input, rounded up; not tokens."""
    characters: int | None = None
    """Characters of text that the model turned into speech; not tokens."""
    text_units: int | None = None
    """Units of 1,000 characters of text that a guardrail read; not tokens."""
    video_seconds: int | None = None
    """Seconds of generated video; not tokens."""

    @property
    def input_tokens(self) -> int:
        """The tokens of the whole prompt, as far as reported."""
        return (
            (self.uncached_input_tokens or 0)
            + (self.cache_read_input_tokens or 0)
            + self.cache_write_input_tokens
        )

    @property
    def cache_write_input_tokens(self) -> int:
        """Tokens written to a cache, with either lifetime."""
        return (self.cache_write_5m_input_tokens or 0) + (self.cache_write_1h_input_tokens or 0)

    @property
    def total_tokens(self) -> int:
        """The tokens of the prompt and the output together."""
        return self.input_tokens + (self.output_tokens or 0)

    def reported(self) -> list[tuple[str, int]]:
        """Return the name and count of each reported class."""
        return [(name, count) for name, count in asdict(self).items() if count is not None]

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum of both usages; a class that neither reports stays None."""
        counts = dict(self.reported())
        for name, count in other.reported():
            counts[name] = counts.get(name, 0) + count
        return Usage(**counts)

    def update(self, later: "Usage") -> "Usage":
        """Return this usage with each class replaced by the count in `later`, if it reports one.

        Providers report cumulative counts and may correct them, so the last count of a class is the
        valid one. Impossible counts are ignored: a negative one would pay the caller.
        """
        reported = {name: count for name, count in later.reported() if is_count(count)}
        return replace(self, **reported) if reported else self

    def fit_parts(self) -> "Usage":
        """Return this usage with each partial count limited to its total; a partial count without a
        total is dropped.
        """
        return replace(
            self,
            reasoning_tokens=_cut(self.reasoning_tokens, self.output_tokens),
            audio_output_tokens=_cut(self.audio_output_tokens, self.output_tokens),
            audio_input_tokens=_cut(self.audio_input_tokens, self.uncached_input_tokens),
            image_input_tokens=_cut(self.image_input_tokens, self.uncached_input_tokens),
            image_output_tokens=_cut(self.image_output_tokens, self.output_tokens),
            cache_read_audio_input_tokens=_cut(
                self.cache_read_audio_input_tokens, self.cache_read_input_tokens
            ),
        )


class Units(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The size of input work in units that have their own rates, without text tokens."""

    media_tokens: int = 0
    """Tokens of inputs other than text."""
    output_tokens: int = 0
    images: int = 0
    search_units: int = 0
    audio_seconds: int = 0
    characters: int = 0
    text_units: int = 0
    video_seconds: int = 0


# Units other than tokens, which have the same names in `Units` and in `Usage`.
PIECES: Final = (
    "images",
    "search_units",
    "audio_seconds",
    "characters",
    "text_units",
    "video_seconds",
)


def is_count(reported: object) -> bool:
    """Return whether a value can be a number of tokens: an integer from 0 to COUNT_MAX."""
    return type(reported) is int and 0 <= reported <= COUNT_MAX


def _cut(part: int | None, whole: int | None) -> int | None:
    return None if part is None or whole is None else min(part, whole)
