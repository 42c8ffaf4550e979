"""Token usage that a provider reports, in classes that have their own prices."""

from typing import Final

from msgspec import Struct

# A thousand times the largest context of any model; a larger count is a defect of the provider.
COUNT_MAX: Final = 1_000_000_000


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens by class; None means that the provider reported nothing, which is not zero.

    The three classes of text input do not overlap: their sum is the whole prompt.
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
    images: int | None = None
    """Images that the model made, not tokens."""
    web_searches: int | None = None
    """Searches that the provider ran by itself, not tokens."""

    @property
    def input_tokens(self) -> int:
        """The whole prompt, as far as it was reported."""
        return (
            (self.uncached_input_tokens or 0)
            + (self.cache_read_input_tokens or 0)
            + self.cache_write_input_tokens
        )

    @property
    def cache_write_input_tokens(self) -> int:
        """Tokens written to a cache, whatever its lifetime."""
        return (self.cache_write_5m_input_tokens or 0) + (self.cache_write_1h_input_tokens or 0)

    @property
    def total_tokens(self) -> int:
        """Prompt and output together."""
        return self.input_tokens + (self.output_tokens or 0)

    def plus(self, other: "Usage") -> "Usage":
        """Add both usages; a class that only one of them reports is as that one reports it."""
        both = {
            name: (getattr(self, name), getattr(other, name)) for name in Usage.__struct_fields__
        }
        return Usage(
            **{
                name: None if counts == (None, None) else sum(count or 0 for count in counts)
                for name, counts in both.items()
            }
        )

    def update(self, later: "Usage") -> "Usage":
        """Return this usage with every class that `later` reports replaced by it.

        Providers report cumulative counts and may restate them: the last value of a class counts.
        An impossible count is ignored: one below zero would pay the caller.
        """
        return Usage(
            **{
                name: getattr(later if _is_count(getattr(later, name)) else self, name)
                for name in Usage.__struct_fields__
            }
        )


def _is_count(reported: int | None) -> bool:
    return reported is not None and 0 <= reported <= COUNT_MAX
