"""Computes the highest plausible usage of one provider stream."""

from collections.abc import Callable
from typing import Final, Self

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.usage import PIECES, Units, Usage
from tollgate.routing.planning.output_limit import with_slack
from tollgate.routing.planning.plan import Attempt

# Dense text has one token per one or two bytes, and tool calls have additional tokens.
_TOKENS_PER_SHOWN_BYTE: Final = 2
_UNSHOWN_TOKENS_PER_CHOICE: Final = 1_024
_SEARCHES_PER_CHOICE: Final = 1_000
# Number of images per choice if images are not parts of the answer.
_IMAGES_PER_CHOICE: Final = 1
# More tokens than any model counts for its largest image.
_TOKENS_PER_IMAGE: Final = 16_384
_INPUT_CLASSES: Final = (
    "uncached_input_tokens",
    "cache_read_input_tokens",
    "cache_write_5m_input_tokens",
    "cache_write_1h_input_tokens",
)


class InputBound(Struct, frozen=True, kw_only=True):
    """The limits for input work at one endpoint."""

    tokens_max: int
    units: Units
    """Estimated units."""
    units_max: Units
    charged: frozenset[str]
    """Units in `PIECES` that the endpoint charges for."""
    likely_output_tokens: Callable[[int], int]
    """Estimates the output tokens from the number of bytes delivered."""
    by_medium: Callable[[Usage], Usage]
    """Splits estimated usage by modality."""


class UsageBound(Struct, frozen=True, kw_only=True):
    """The highest plausible usage of a stream."""

    input_tokens: int
    output_tokens: int
    web_searches: int
    units: Units
    """Limits for units other than tokens."""

    @classmethod
    def of(
        cls,
        attempt: Attempt,
        *,
        choices: int,
        prompt_tokens_max: int,
        output_tokens_max: int | None,
        shown_bytes: int,
        reasons: bool,
        images: int = 0,
        inputs: InputBound | None = None,
    ) -> Self:
        """Return the limits for a stream with this many choices.

        `prompt_tokens_max` limits the prompt, which each choice may have read. `output_tokens_max`
        is the caller's limit on visible and hidden output, to which `with_slack` adds a margin.
        `shown_bytes` is the size of the delivered text, reasoning and arguments, `images` the
        number of delivered images. `reasons` is True if the answer may contain hidden reasoning.
        `inputs` are the limits for input work; None for a conversation, to which servers add their
        own tokens.
        """
        if inputs is not None:
            return cls(
                input_tokens=inputs.tokens_max,
                output_tokens=inputs.units_max.output_tokens,
                web_searches=0,
                units=inputs.units_max,
            )
        output = _TOKENS_PER_SHOWN_BYTE * shown_bytes + _UNSHOWN_TOKENS_PER_CHOICE * choices
        if reasons:
            output += (attempt.target.output_tokens_max or attempt.context_tokens) * choices
        if output_tokens_max is not None:
            output = min(output, with_slack(output_tokens_max) * choices)
        return cls(
            input_tokens=prompt_tokens_max * choices,
            output_tokens=output + _TOKENS_PER_IMAGE * images,
            web_searches=_SEARCHES_PER_CHOICE * choices,
            units=Units(images=max(images, _IMAGES_PER_CHOICE * choices)),
        )

    def apply(self, usage: Usage) -> Usage:
        """Return the usage with every count cut to its limit."""
        return replace(
            usage,
            **self._cut_input(usage),
            output_tokens=_cut(usage.output_tokens, self.output_tokens),
            web_searches=_cut(usage.web_searches, self.web_searches),
            **{
                unit: min(count, getattr(self.units, unit))
                for unit in PIECES
                if (count := getattr(usage, unit)) is not None
            },
        )

    def _cut_input(self, usage: Usage) -> dict[str, int]:
        """Return the corrected input counts; the largest is cut first, because it is most likely to
        be wrong.
        """
        excess = usage.input_tokens - self.input_tokens
        if excess <= 0:
            return {}
        counts = {name: getattr(usage, name) or 0 for name in _INPUT_CLASSES}
        cut: dict[str, int] = {}
        for name in sorted(counts, key=counts.__getitem__, reverse=True):
            removed = min(excess, counts[name])
            if removed:
                cut[name] = counts[name] - removed
            excess -= removed
        return cut


def _cut(count: int | None, bound: int) -> int | None:
    return None if count is None else min(count, bound)
