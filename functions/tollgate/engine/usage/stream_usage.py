"""Measures the usage of one provider stream, whether reported or estimated."""

from typing import Final, assert_never

from msgspec.structs import replace

from tollgate.core.content import MadeImage, Reasoning
from tollgate.core.events import (
    Ended,
    Grouped,
    Output,
    PartDelta,
    PartDeltas,
    PartEnd,
    Partial,
    PartNote,
    PartStart,
    Started,
    UnknownFields,
    UsageReported,
)
from tollgate.core.json_value import JsonValue
from tollgate.core.records.generation import UsageSource
from tollgate.core.usage import Usage
from tollgate.engine.usage.usage_bound import InputBound, UsageBound
from tollgate.routing.planning.output_limit import with_slack
from tollgate.routing.planning.plan import Attempt
from tollgate.routing.price import Price

# Typical for English text and code; used only if a provider reports nothing.
_BYTES_PER_TOKEN: Final = 4
# More than any answer has on average, although single tokens, such as runs of spaces, may be
# longer.
_BYTES_PER_TOKEN_MAX: Final = 16
# Tokens of an image with 1024 x 1024 pixels.
_TOKENS_PER_IMAGE: Final = 1_290


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


class StreamUsage:
    """The usage of a stream; each usage report covers all of its choices."""

    def __init__(self, choices: int) -> None:
        self.usage = Usage()
        self.raw_usage: JsonValue = None
        self.service_tier: str | None = None
        """Service tier that the provider reported last."""
        self._choices = choices
        self._delivered_bytes = 0
        self._has_output = False
        self._output_bytes = 0
        self._images = 0
        self._reasons = False
        self._prompt_blocked = False
        self._running = choices

    def observe(self, event: Grouped) -> None:
        """Count an event from the stream."""
        match event:
            case PartDelta():
                self._delivered_bytes += _size(event.text)
            case PartDeltas():
                self._delivered_bytes += _size("".join(event.texts))
            case UsageReported(usage=usage, raw=raw, service_tier=tier):
                self.usage = self.usage.update(usage)
                self.raw_usage = raw
                self.service_tier = tier or self.service_tier
            case Started(service_tier=str(tier)):
                self.service_tier = tier
            case Ended(prompt_blocked=blocked):
                self._running -= 1
                self._prompt_blocked = blocked
            case PartStart(part=Reasoning()):
                self._reasons = True
            case PartStart(part=MadeImage()):
                self._images += 1
            case Output(pieces=pieces):
                self._has_output = True
                self._output_bytes += sum(map(len, pieces))
            case Partial():
                self._has_output = True
            case Started() | PartStart() | PartNote() | PartEnd() | UnknownFields():
                pass
            case _:
                assert_never(event)

    def passes(self, output_tokens_max: int, echoed_bytes: int) -> bool:
        """Return whether more text was delivered than this many tokens can account for."""
        most = with_slack(output_tokens_max) * _BYTES_PER_TOKEN_MAX + echoed_bytes
        return self._delivered_bytes > most * self._choices

    @property
    def ended(self) -> bool:
        """True once every choice is complete."""
        return self._running <= 0

    def measure(
        self,
        attempt: Attempt,
        *,
        estimated_input_tokens: int,
        prompt_tokens_max: int,
        output_tokens_max: int | None,
        echoed_bytes: int = 0,
        inputs: InputBound | None = None,
    ) -> tuple[Usage, UsageSource]:
        """Return the usage and its source.

        `prompt_tokens_max` and `output_tokens_max` are limits per choice. `echoed_bytes` is the
        size of the prompt that each choice repeats. `inputs` are the limits for input work; None
        for a conversation.

        Once text was delivered, missing counts are estimated, unless the provider blocked the
        prompt. Counts above the attempt's limit are cut.
        """
        shown_bytes = max(0, self._delivered_bytes - echoed_bytes * self._choices)
        usage, source = (
            self._estimate_missing(estimated_input_tokens, shown_bytes)
            if inputs is None
            else self._estimate_units(estimated_input_tokens, inputs, attempt.prices.base)
        )
        if self._images and usage.images is None:
            usage = replace(usage, images=self._images)
        has_rate = attempt.prices.base.image_output is not None
        if self._images and has_rate and usage.image_output_tokens is None:
            # If a report has no image tokens, the images would be billed as text.
            usage = replace(usage, image_output_tokens=self._images * _TOKENS_PER_IMAGE)
            source = "estimated"
        bound = UsageBound.of(
            attempt,
            choices=self._choices,
            prompt_tokens_max=prompt_tokens_max,
            output_tokens_max=output_tokens_max,
            shown_bytes=shown_bytes,
            images=self._images,
            reasons=(
                self._reasons
                or bool(usage.reasoning_tokens)
                or "reasoning" in attempt.target.supports
            ),
            inputs=inputs,
        )
        plausible = bound.apply(usage)
        return plausible.fit_parts(), source if plausible == usage else "bounded"

    def _estimate_units(
        self, estimated_input_tokens: int, inputs: InputBound, price: Price
    ) -> tuple[Usage, UsageSource]:
        """Return the usage of input work; all inputs are charged as soon as there is any output."""
        if not self.ended and not self._has_output:
            return self.usage, "none" if self.usage == Usage() else "provider"
        likely = Usage(
            uncached_input_tokens=estimated_input_tokens,
            output_tokens=inputs.units.output_tokens
            if self.ended
            else inputs.likely_output_tokens(self._output_bytes),
            **{unit: getattr(inputs.units, unit) for unit in inputs.charged},
        )
        reported = self.usage
        by_tokens = not inputs.charged and (price.input_dearest or price.output_dearest)
        if by_tokens and reported.audio_seconds and not reported.total_tokens:
            # Some servers report only seconds. The token counts are then estimated, because the
            # work is not free.
            reported = replace(reported, uncached_input_tokens=None, output_tokens=None)
        likely = _without_parts(inputs.by_medium(likely), reported)
        usage = likely.update(reported)
        return usage, "provider" if usage == self.usage else "estimated"

    def _estimate_missing(
        self, estimated_input_tokens: int, shown_bytes: int
    ) -> tuple[Usage, UsageSource]:
        complete = (
            self.usage.uncached_input_tokens is not None and self.usage.output_tokens is not None
        )
        if self._prompt_blocked:
            return self.usage, "none" if self.usage == Usage() else "provider"
        if complete and self.ended:
            return self.usage, "provider"
        if not self.ended and not self._delivered_bytes and not self._images:
            return self.usage, "provider" if complete else "none"
        delivered_tokens = -(-shown_bytes // _BYTES_PER_TOKEN) + self._images * _TOKENS_PER_IMAGE
        estimate = Usage(
            uncached_input_tokens=estimated_input_tokens,
            output_tokens=delivered_tokens,
        ).update(self.usage)
        if not self.ended and (estimate.output_tokens or 0) < delivered_tokens:
            # An early report does not count tokens that were delivered later.
            estimate = replace(estimate, output_tokens=delivered_tokens)
        return estimate, "estimated"


def _without_parts(likely: Usage, reported: Usage) -> Usage:
    """Return the likely usage, without the estimated audio and image parts of any side whose total
    the provider reported.
    """
    if reported.uncached_input_tokens is not None:
        likely = replace(likely, audio_input_tokens=None, image_input_tokens=None)
    if reported.output_tokens is not None:
        likely = replace(likely, audio_output_tokens=None, image_output_tokens=None)
    return likely
