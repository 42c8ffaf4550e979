"""The fields that control thinking: a level for Gemini 3, a token budget for Gemini 2.5.

https://ai.google.dev/gemini-api/docs/thinking (seen 2026-11-21). Gemini refuses both.
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


def thinking_config(wanted: ReasoningOptions | None, dialect: Dialect) -> tuple[_Config, bool]:
    """Return `thinkingConfig`, which may be empty, and whether it departs from the request."""
    if wanted is None:
        return {}, False
    thinks = wants_thoughts(wanted)
    match dialect.reasoning:
        case "gemini_level":
            config, departs = _by_level(wanted, dialect)
        case "gemini_budget":
            config, departs = _by_tokens(wanted, dialect)
        case _:
            return {}, thinks is not False
    if thinks is not False and not wanted.exclude:
        config["includeThoughts"] = True
    return config, departs


def _by_level(wanted: ReasoningOptions, dialect: Dialect) -> tuple[_Config, bool]:
    effort = effort_wanted(wanted)
    if effort is None:
        return {}, False
    level = nearest_effort(effort, dialect.efforts)
    if level is None:
        return {}, True
    return {"thinkingLevel": level.upper()}, level != effort or bool(wanted.tokens_max)


def _by_tokens(wanted: ReasoningOptions, dialect: Dialect) -> tuple[_Config, bool]:
    least, most = dialect.gemini.thinking_tokens_min, dialect.gemini.thinking_tokens_max
    if wants_thoughts(wanted) is False:
        stops = "none" in dialect.efforts
        return {"thinkingBudget": 0 if stops else least}, not stops
    if wanted.effort is None and wanted.tokens_max is None:
        return {}, False
    tokens = min(max(tokens_wanted(wanted), least), most)
    # A budget derived from an effort is a guess, so limiting the guess to the model's range does
    # not count as a change.
    return {"thinkingBudget": tokens}, wanted.tokens_max not in (None, tokens)
