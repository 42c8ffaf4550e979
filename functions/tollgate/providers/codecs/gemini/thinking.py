"""The fields that control thinking: a level for Gemini 3, a token budget for Gemini 2.5.

https://ai.google.dev/gemini-api/docs/thinking (seen 2026-11-21). Gemini refuses a request that has
both fields.
"""

from tollgate.core.json_value import JsonValue
from tollgate.core.request import ReasoningOptions
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.shared.efforts import (
    effort_wanted,
    nearest_effort,
    tokens_wanted,
    wants_thoughts,
)

_Config = dict[str, JsonValue]


def thinking_config(options: ReasoningOptions | None, dialect: Dialect) -> tuple[_Config, bool]:
    """Return `thinkingConfig`, which may be empty, and whether it differs from the request."""
    if options is None:
        return {}, False
    thinks = wants_thoughts(options)
    match dialect.reasoning:
        case "gemini_level":
            config, departs = _by_level(options, dialect)
        case "gemini_budget":
            config, departs = _by_tokens(options, dialect)
        case _:
            return {}, thinks is not False
    if thinks is not False and not options.exclude:
        config["includeThoughts"] = True
    return config, departs


def _by_level(options: ReasoningOptions, dialect: Dialect) -> tuple[_Config, bool]:
    effort = effort_wanted(options)
    if effort is None:
        return {}, False
    level = nearest_effort(effort, dialect.efforts)
    if level is None:
        return {}, True
    return {"thinkingLevel": level.upper()}, level != effort or bool(options.tokens_max)


def _by_tokens(options: ReasoningOptions, dialect: Dialect) -> tuple[_Config, bool]:
    tokens_min, tokens_max = dialect.gemini.thinking_tokens_min, dialect.gemini.thinking_tokens_max
    if wants_thoughts(options) is False:
        stops = "none" in dialect.efforts
        return {"thinkingBudget": 0 if stops else tokens_min}, not stops
    if options.effort is None and options.tokens_max is None:
        return {}, False
    tokens = min(max(tokens_wanted(options), tokens_min), tokens_max)
    # A budget derived from an effort is a guess, so limiting the guess to the model's range does
    # not count as a change.
    return {"thinkingBudget": tokens}, options.tokens_max not in (None, tokens)
