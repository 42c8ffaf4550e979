"""The fields that make Claude think, which differ by generation."""

from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import JsonValue

from tollgate.core.request import Effort, ReasoningOptions
from tollgate.providers.dialect import Dialect
from tollgate.providers.shared.efforts import (
    effort_alone,
    effort_wanted,
    nearest_effort,
    thinking_display,
    tokens_wanted,
    wants_thoughts,
)

# https://platform.claude.com/docs/en/build-with-claude/extended-thinking (seen 2026-11-21): the
# least budget there is, and it must be below max_tokens.
_BUDGET_MIN: Final = 1_024


class Thinking(Struct, frozen=True, kw_only=True):
    """The thinking of one request."""

    # The field `thinking`.
    config: dict[str, JsonValue] = field(default_factory=dict)
    # The field `output_config.effort`.
    effort: Effort | None = None
    # Whether the model will or may think.
    is_on: bool = False
    # Whether it departs from what the caller requested.
    is_adapted: bool = False


def thinking(
    asked: ReasoningOptions,
    dialect: Dialect,
    *,
    output_tokens_max: int,
    forbidden: bool,
    without_budget: bool,
) -> Thinking:
    """Return the thinking that comes nearest to what the caller requested.

    `forbidden`: another part of the request excludes thinking. `without_budget`: the history lacks
    the thoughts that a model which thinks by a budget of tokens requires back.
    """
    wants = wants_thoughts(asked)
    if asked.effort_alone:
        return _with_effort_alone(asked, dialect, declined=wants is False, must=forbidden)
    if not wants:
        return _off(dialect, declined=wants is False, must=forbidden)
    if forbidden:
        return _off(dialect, declined=True, must=True, is_adapted=True)
    match dialect.reasoning:
        case "claude_adaptive":
            return _adaptive(asked, dialect)
        case "claude_budget" if output_tokens_max > _BUDGET_MIN and not without_budget:
            return _budget(asked, output_tokens_max)
        case _:
            return _off(dialect, declined=True, must=True, is_adapted=True)


def _off(dialect: Dialect, *, declined: bool, must: bool, is_adapted: bool = False) -> Thinking:
    """Return no thinking, or the least there is for models that think by default."""
    if dialect.reasoning not in ("claude_budget", "claude_adaptive"):
        return Thinking(is_adapted=is_adapted)
    match dialect.claude.thinking_off:
        case "absent":
            return Thinking(is_adapted=is_adapted)
        case "never":
            least = nearest_effort("low", dialect.efforts) if declined else None
            return Thinking(effort=least, is_on=True, is_adapted=declined)
        case word:
            if declined or must:
                return Thinking(config={"type": word}, is_adapted=is_adapted)
            return Thinking(is_on=True)


def _with_effort_alone(
    asked: ReasoningOptions, dialect: Dialect, *, declined: bool, must: bool
) -> Thinking:
    """Return no thinking that was not requested, beside the effort of the whole answer.

    Models that think by a budget of tokens know no such effort.
    """
    plain = _off(dialect, declined=declined, must=must)
    if dialect.reasoning != "claude_adaptive":
        return replace(plain, is_adapted=True)
    effort = effort_alone(asked, dialect.efforts, thinking_is_off=bool(plain.config))
    return replace(plain, effort=effort, is_adapted=plain.is_adapted or effort != asked.effort)


def _budget(asked: ReasoningOptions, output_tokens_max: int) -> Thinking:
    """Return thinking by tokens, by default at most four fifths of the output."""
    room = output_tokens_max * 4 // 5 if asked.tokens_max is None else output_tokens_max - 1
    budget = max(_BUDGET_MIN, min(tokens_wanted(asked), room))
    return Thinking(
        config={"type": "enabled", "budget_tokens": budget},
        is_on=True,
        is_adapted=asked.tokens_max is not None
        and (budget != asked.tokens_max or asked.effort is not None),
    )


def _adaptive(asked: ReasoningOptions, dialect: Dialect) -> Thinking:
    """Return thinking by effort; newer models send its text only if `display` requests it."""
    wanted = effort_wanted(asked)
    effort = None if wanted is None else nearest_effort(wanted, dialect.efforts)
    return Thinking(
        config={"type": "adaptive", **thinking_display(asked)},
        effort=effort,
        is_on=True,
        is_adapted=asked.tokens_max is not None or effort != wanted,
    )
