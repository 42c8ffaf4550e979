"""The fields that turn on Claude's thinking, which depend on the model's generation."""

from typing import Final

from tollgate.core.request import ReasoningOptions
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.shared.claude_thinking import (
    ClaudeThinking,
    add_effort,
    think_by_effort,
    turn_thinking_off,
)
from tollgate.providers.shared.efforts import tokens_wanted, wants_thoughts

# The smallest token budget that Claude accepts; a budget must also be less than max_tokens.
# https://platform.claude.com/docs/en/build-with-claude/extended-thinking (seen 2026-11-21)
_BUDGET_MIN: Final = 1_024


def thinking(
    options: ReasoningOptions,
    dialect: Dialect,
    *,
    output_tokens_max: int,
    forbidden: bool,
    without_budget: bool,
) -> ClaudeThinking:
    """Return the thinking settings that are closest to the caller's request.

    `forbidden` means that another part of the request excludes thinking. `without_budget` means
    that no token budget is possible, because the history lacks the thoughts that the model would
    then require.
    """
    wants = wants_thoughts(options)
    if options.effort_alone:
        plain = turn_thinking_off(dialect, declined=wants is False, must=forbidden)
        return add_effort(plain, options, dialect)
    if not wants:
        return turn_thinking_off(dialect, declined=wants is False, must=forbidden)
    if forbidden:
        return turn_thinking_off(dialect, declined=True, must=True, is_adapted=True)
    match dialect.reasoning:
        case "claude_adaptive":
            return think_by_effort(options, dialect)
        case "claude_budget" if output_tokens_max > _BUDGET_MIN and not without_budget:
            return _budget(options, output_tokens_max)
        case _:
            return turn_thinking_off(dialect, declined=True, must=True, is_adapted=True)


def _budget(options: ReasoningOptions, output_tokens_max: int) -> ClaudeThinking:
    """Return thinking with a token budget, capped by default at four fifths of the output limit."""
    room = output_tokens_max * 4 // 5 if options.tokens_max is None else output_tokens_max - 1
    budget = max(_BUDGET_MIN, min(tokens_wanted(options), room))
    return ClaudeThinking(
        config={"type": "enabled", "budget_tokens": budget},
        is_on=True,
        is_adapted=options.tokens_max is not None
        and (budget != options.tokens_max or options.effort is not None),
    )
