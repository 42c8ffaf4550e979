"""Converts Gemini's token counts to classes that do not overlap.

total = prompt + candidates + thoughts + tokens that tools added to the prompt. The prompt includes
cached tokens. Gemini leaves out counts that are zero or still unknown; the gateway derives a
missing count of the prompt or of the candidates from the total.
"""

from tollgate.core.json_value import JsonValue
from tollgate.core.usage import Usage
from tollgate.providers.shared.counts import Counts, rest_of_total, split, sum_counts


def usage_of(raw: JsonValue) -> Usage:
    """Return the tokens of each class; None for a class that cannot be derived from the report."""
    report = Counts(raw)
    cached = report.count("cachedContentTokenCount")
    uncached = _prompt_tokens(report)
    if uncached is not None:
        uncached, (cached,) = split(uncached, cached)
    heard = _part_tokens(report, "promptTokensDetails", "AUDIO")
    heard_cached = _part_tokens(report, "cacheTokensDetails", "AUDIO")
    if heard is not None:
        heard, (heard_cached,) = split(heard, heard_cached)
    return Usage(
        uncached_input_tokens=uncached,
        cache_read_input_tokens=cached,
        output_tokens=_output_tokens(report),
        reasoning_tokens=report.count("thoughtsTokenCount"),
        audio_input_tokens=heard,
        cache_read_audio_input_tokens=heard_cached,
        audio_output_tokens=_part_tokens(report, "candidatesTokensDetails", "AUDIO"),
        image_input_tokens=_part_tokens(report, "promptTokensDetails", "IMAGE"),
        image_output_tokens=_part_tokens(report, "candidatesTokensDetails", "IMAGE"),
    )


def _part_tokens(report: Counts, details: str, modality: str) -> int | None:
    listed = [entry for entry in report.each(details) if entry.word("modality") == modality]
    return sum_counts(*(entry.count("tokenCount") for entry in listed)) if listed else None


def _prompt_tokens(report: Counts) -> int | None:
    """Return the tokens of the prompt, including the tokens that tools added."""
    prompt, by_tools = report.count("promptTokenCount"), report.count("toolUsePromptTokenCount")
    if prompt is None:
        prompt = rest_of_total(
            report.count("totalTokenCount"),
            report.count("candidatesTokenCount"),
            report.count("thoughtsTokenCount"),
            by_tools,
        )
    return None if prompt is None else sum_counts(prompt, by_tools)


def _output_tokens(report: Counts) -> int | None:
    """Return the tokens of the answer, including its thoughts."""
    candidates, thoughts = report.count("candidatesTokenCount"), report.count("thoughtsTokenCount")
    if candidates is not None:
        return sum_counts(candidates, thoughts)
    prompt, by_tools = report.count("promptTokenCount"), report.count("toolUsePromptTokenCount")
    if prompt is None:
        return thoughts
    rest = rest_of_total(report.count("totalTokenCount"), prompt, by_tools)
    return thoughts if rest is None else max(rest, thoughts or 0)
