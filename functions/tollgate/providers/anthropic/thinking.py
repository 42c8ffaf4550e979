"""How much Claude is to think, in the words of its generation."""

from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from tollgate.core.request import Effort, ReasoningOptions
from tollgate.providers.claude import EFFORTS, Claude, ClaudeEffort

# Tokens of thought for an effort, where a model is told a budget; OpenRouter and LiteLLM have
# tables of the same order. A budget must leave room in the output for the answer.
_BUDGET: Final[dict[Effort, int]] = {
    "minimal": 1_024,
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 65_536,
}
_BUDGET_MIN: Final = 1_024
# The share of the output that may be spent on thoughts when nobody named a number.
_SHARE: Final = (4, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """What goes out as `thinking` and as `output_config.effort`.

    `is_on` where the model will or may think; `is_adapted` where it is not what the caller asked.
    """

    config: dict[str, JsonValue] = field(default_factory=dict)
    effort: ClaudeEffort | None = None
    is_on: bool = False
    is_adapted: bool = False


def thinking(
    asked: ReasoningOptions | None,
    claude: Claude,
    *,
    output_tokens_max: int,
    forbidden: bool,
    without_budget: bool,
) -> Thinking:
    """The thinking that serves what was asked.

    `forbidden`: something else in the request excludes it. `without_budget`: the history lacks the
    thoughts that a model which thinks by budget wants to see again.
    """
    if asked is None or not _wants(asked):
        declined = asked is not None and (asked.enabled is False or asked.effort == "none")
        return _off(claude, declined=declined, must=forbidden)
    if forbidden or claude.thinking == "none":
        return _off(claude, declined=True, must=True, adapted=True)
    by_budget = claude.thinking == "budget" or (
        claude.thinking == "both" and asked.tokens_max is not None
    )
    if not by_budget:
        return _adaptive(asked, claude)
    if without_budget or output_tokens_max <= _BUDGET_MIN:
        return _off(claude, declined=True, must=True, adapted=True)
    return _budget(asked, output_tokens_max)


def _wants(asked: ReasoningOptions) -> bool:
    if asked.enabled is False or asked.effort == "none":
        return False
    return bool(asked.effort or asked.tokens_max or asked.enabled)


def _off(claude: Claude, *, declined: bool, must: bool, adapted: bool = False) -> Thinking:
    """No thinking, or as little as there can be; models that think unasked are told so."""
    match claude.thinking_off:
        case "absent":
            return Thinking(is_adapted=adapted)
        case "never":
            least = claude.efforts[0] if declined and claude.efforts else None
            return Thinking(effort=least, is_on=True, is_adapted=declined)
        case word:
            if declined or must:
                return Thinking(config={"type": word}, is_adapted=adapted)
            return Thinking(is_on=True)


def _budget(asked: ReasoningOptions, output_tokens_max: int) -> Thinking:
    share, whole = _SHARE
    if asked.tokens_max is not None:
        wanted, room = asked.tokens_max, output_tokens_max - 1
    else:
        wanted, room = _BUDGET[asked.effort or "medium"], output_tokens_max * share // whole
    budget = max(_BUDGET_MIN, min(wanted, room))
    return Thinking(
        config={"type": "enabled", "budget_tokens": budget},
        is_on=True,
        is_adapted=asked.tokens_max is not None and budget != asked.tokens_max,
    )


def _adaptive(asked: ReasoningOptions, claude: Claude) -> Thinking:
    """Thinking by effort. Newer models leave its text out unless they are asked for it."""
    wanted = asked.effort
    if wanted is None and asked.tokens_max is not None:
        tokens_max = asked.tokens_max
        wanted = next((name for name, tokens in _BUDGET.items() if tokens >= tokens_max), "max")
    effort = None if wanted is None else _nearest(wanted, claude)
    return Thinking(
        config={"type": "adaptive", "display": "omitted" if asked.exclude else "summarized"},
        effort=effort,
        is_on=True,
        is_adapted=asked.tokens_max is not None or effort != wanted,
    )


def _nearest(wanted: Effort, claude: Claude) -> ClaudeEffort | None:
    """The effort itself, or the next lower one that the model knows: never a dearer one."""
    known = [effort for effort in EFFORTS if effort in claude.efforts]
    order: tuple[Effort, ...] = ("none", "minimal", *EFFORTS)
    lower = [effort for effort in known if order.index(effort) <= order.index(wanted)]
    return lower[-1] if lower else next(iter(known), None)
