"""The usage of one stream of a provider, reported or estimated."""

from typing import Final, assert_never

from msgspec.structs import replace
from pydantic import JsonValue

from tollgate.core.events import (
    Ended,
    PartDelta,
    PartEnd,
    PartNote,
    PartStart,
    Started,
    StreamEvent,
    UsageReported,
)
from tollgate.core.generation import UsageSource
from tollgate.core.usage import Usage

# Typical of English text and code; used only where a provider reported nothing.
_BYTES_PER_TOKEN: Final = 4


class StreamUsage:
    """The usage of a stream of `choices` choices; what the stream reports covers all of them."""

    def __init__(self, choices: int) -> None:
        self.usage = Usage()
        self.raw_usage: JsonValue = None
        self._delivered_bytes = 0
        self._running = choices

    def observe(self, event: StreamEvent) -> None:
        """Count an event of the stream."""
        match event:
            case PartDelta(text=text):
                self._delivered_bytes += len(text) if text.isascii() else len(text.encode())
            case UsageReported(usage=usage, raw=raw):
                self.usage = self.usage.update(usage)
                self.raw_usage = raw
            case Ended():
                self._running -= 1
            case Started() | PartStart() | PartNote() | PartEnd():
                pass
            case _:
                assert_never(event)

    @property
    def ended(self) -> bool:
        """True once every choice is complete."""
        return self._running <= 0

    def measure(self, estimated_input_tokens: int) -> tuple[Usage, UsageSource]:
        """Return the usage and its source.

        Counts that the provider did not report are estimated once text was delivered.
        """
        complete = (
            self.usage.uncached_input_tokens is not None and self.usage.output_tokens is not None
        )
        if complete and self.ended:
            return self.usage, "provider"
        if not self.ended and not self._delivered_bytes:
            return self.usage, "provider" if complete else "none"
        delivered_tokens = -(-self._delivered_bytes // _BYTES_PER_TOKEN)
        estimate = Usage(
            uncached_input_tokens=estimated_input_tokens,
            output_tokens=delivered_tokens,
        ).update(self.usage)
        if not self.ended and (estimate.output_tokens or 0) < delivered_tokens:
            # Early reports count the tokens generated until then, not those delivered since.
            estimate = replace(estimate, output_tokens=delivered_tokens)
        return estimate, "estimated"
