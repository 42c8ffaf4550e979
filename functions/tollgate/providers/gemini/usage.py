"""Gemini's token counts as classes that do not overlap.

total = prompt + candidates + thoughts + what tools put into the prompt. Cached tokens are part of
the prompt. A count of zero is left out, as is a count that is not known yet, so that one missing
count follows from the total.
"""

from collections.abc import Sequence

from tollgate.core.usage import Usage
from tollgate.providers.gemini.wire import ModalityCount, UsageMetadata


def usage_of(report: UsageMetadata) -> Usage:
    """Return the usage by class; a class that does not follow from the report is None."""
    return Usage(
        uncached_input_tokens=_uncached(report),
        cache_read_input_tokens=report.cached,
        output_tokens=_output_tokens(report),
        reasoning_tokens=report.thoughts,
        audio_input_tokens=_audio_input_tokens(report),
        cache_read_audio_input_tokens=_audio(report.cached_details),
        audio_output_tokens=_audio(report.candidates_details),
    )


def _audio_input_tokens(report: UsageMetadata) -> int | None:
    """Return the audio tokens of the prompt that did not come from a cache."""
    heard = _audio(report.prompt_details)
    return None if heard is None else max(0, heard - (_audio(report.cached_details) or 0))


def _audio(details: Sequence[ModalityCount]) -> int | None:
    counts = [count.tokens for count in details if count.modality == "AUDIO"]
    return sum(counts) if counts else None


def _uncached(report: UsageMetadata) -> int | None:
    prompt = report.prompt
    if prompt is None and report.total is not None:
        beside = (report.candidates, report.thoughts, report.tool_use_prompt)
        prompt = max(0, report.total - sum(count or 0 for count in beside))
    if prompt is None:
        return None
    return max(0, prompt + (report.tool_use_prompt or 0) - (report.cached or 0))


def _output_tokens(report: UsageMetadata) -> int | None:
    if report.candidates is not None:
        return report.candidates + (report.thoughts or 0)
    if report.total is not None and report.prompt is not None:
        return max(0, report.total - report.prompt - (report.tool_use_prompt or 0))
    return report.thoughts
