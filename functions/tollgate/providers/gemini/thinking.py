"""How much a model thinks, in the words that this model takes.

Gemini 3 takes levels, Gemini 2.5 numbers of tokens, and no model both. What an effort is worth in
tokens: https://ai.google.dev/gemini-api/docs/openai (seen 2026-11-21); `xhigh` and `max` are not
Google's words and stand for all there is.
"""

from typing import Final

from pydantic import JsonValue

from tollgate.core.request import Effort, ReasoningOptions
from tollgate.providers.dialect import GeminiDialect

_TOKENS: Final[dict[Effort, int]] = {
    "none": 0,
    "minimal": 1024,
    "low": 1024,
    "medium": 8192,
    "high": 24576,
}
_EFFORTS: Final[tuple[Effort, ...]] = (
    "none",
    "minimal",
    "low",
    "medium",
    "high",
    "xhigh",
    "max",
)


def thinking_config(
    options: ReasoningOptions | None, dialect: GeminiDialect
) -> tuple[dict[str, JsonValue], bool]:
    """The `thinkingConfig`, empty if there is none, and whether it departs from what was asked."""
    if options is None:
        return {}, False
    stop = options.effort == "none" or options.enabled is False
    if dialect.thinking_levels:
        config, departs = _by_level(options, stop, dialect)
    elif dialect.thinking_tokens_max is not None:
        config, departs = _by_tokens(options, stop, dialect, dialect.thinking_tokens_max)
    else:
        return {}, not stop
    if not stop and not options.exclude:
        config["includeThoughts"] = True
    return config, departs


def _by_level(
    options: ReasoningOptions, stop: bool, dialect: GeminiDialect
) -> tuple[dict[str, JsonValue], bool]:
    wanted: Effort | None = "none" if stop else options.effort
    if options.tokens_max is not None and not stop:
        wanted = next(
            (effort for effort in _EFFORTS[1:5] if _TOKENS[effort] >= options.tokens_max), "high"
        )
    if wanted is None:
        return {}, False
    # The least that is enough, or all there is.
    enough = [
        level
        for level in dialect.thinking_levels
        if _EFFORTS.index(level) >= _EFFORTS.index(wanted)
    ]
    level = min(enough or dialect.thinking_levels, key=_EFFORTS.index)
    if not enough:
        level = max(dialect.thinking_levels, key=_EFFORTS.index)
    return {"thinkingLevel": level.upper()}, level != options.effort


def _by_tokens(
    options: ReasoningOptions, stop: bool, dialect: GeminiDialect, tokens_max: int
) -> tuple[dict[str, JsonValue], bool]:
    if stop:
        if dialect.thinking_stops:
            return {"thinkingBudget": 0}, False
        return {"thinkingBudget": dialect.thinking_tokens_min}, True
    wanted = options.tokens_max
    if wanted is None and options.effort is not None:
        # An effort is no number, so that keeping it within the model's limits is no departure.
        tokens = _TOKENS.get(options.effort, tokens_max)
        return {"thinkingBudget": _within(tokens, dialect.thinking_tokens_min, tokens_max)}, False
    if wanted is None:
        return {}, False
    tokens = _within(wanted, dialect.thinking_tokens_min, tokens_max)
    return {"thinkingBudget": tokens}, tokens != wanted


def _within(tokens: int, least: int, most: int) -> int:
    return min(max(tokens, least), most)
