"""The fields that turn on thinking on Bedrock, which depend on the model family.

Claude: https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-extended-thinking.html,
Nova: https://docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html. The endpoint's
dialect names the model's family and the efforts that the model knows.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from tollgate.core.content import Reasoning, ToolCall
from tollgate.core.json_value import JsonValue
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    ReasoningOptions,
    ToolMessage,
)
from tollgate.providers.ports.base import Target
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.shared.claude_thinking import (
    ClaudeThinking,
    add_effort,
    think_by_effort,
    turn_thinking_off,
)
from tollgate.providers.shared.efforts import (
    effort_wanted,
    nearest_effort,
    tokens_wanted,
    wants_thoughts,
)

_BUDGET_TOKENS_MIN: Final = 1024


class Thinking(Struct, frozen=True, kw_only=True):
    """The thinking of one request."""

    fields: dict[str, JsonValue] = field(default_factory=dict)
    """The model family's own fields, for `additionalModelRequestFields`."""
    adapted: bool = False
    """True if the thinking differs from what the caller requested."""
    output_tokens_max: int | None = None
    """The output limit to send with Claude's budget if the caller set no limit."""
    is_claude: bool = False
    """True if a Claude model thinks, which fixes its temperature."""


def thinking(request: GenerationRequest, target: Target) -> Thinking:
    """Return the thinking to request; no fields if the caller has no preference.

    Claude refuses to think if a call is forced. Claude 5 and later think by default.
    """
    options, style = request.reasoning, target.dialect.reasoning
    thinks = None if options is None else wants_thoughts(options)
    forced = forces_a_call(request)
    if (
        options is not None
        and options.effort_alone
        and style in ("claude_adaptive", "claude_budget")
    ):
        return _with_effort_alone(options, target.dialect, declined=thinks is False, must=forced)
    if options is None or not thinks:
        if style != "claude_adaptive":
            return Thinking()
        return _off(target.dialect, declined=thinks is False, must=forced)
    if "reasoning" not in target.supports:
        return Thinking(adapted=True)
    match style:
        case "claude_adaptive" if forced:
            return _off(target.dialect, declined=True, must=True, adapted=True)
        case "claude_budget" if forced:
            return Thinking(adapted=True)
        case "claude_budget":
            return _budget(request, options, target)
        case "claude_adaptive":
            return _of_claude(think_by_effort(options, target.dialect), is_claude=True)
        case "nova":
            effort, exact = _effort(options, target)
            effort_field: dict[str, JsonValue] = {"maxReasoningEffort": effort} if effort else {}
            return Thinking(
                fields={"reasoningConfig": {"type": "enabled", **effort_field}}, adapted=not exact
            )
        case "effort":
            effort, exact = _effort(options, target)
            return Thinking(
                fields={"reasoning_effort": effort} if effort else {}, adapted=not exact
            )
        case _:
            return Thinking(adapted=True)


def _off(dialect: Dialect, *, declined: bool, must: bool, adapted: bool = False) -> Thinking:
    """Return no thinking, or the least thinking that this generation of Claude allows."""
    return _of_claude(turn_thinking_off(dialect, declined=declined, must=must, is_adapted=adapted))


def _with_effort_alone(
    options: ReasoningOptions, dialect: Dialect, *, declined: bool, must: bool
) -> Thinking:
    """Return the requested effort for the whole answer, without thinking."""
    if dialect.reasoning != "claude_adaptive":
        return Thinking(adapted=True)
    plain = turn_thinking_off(dialect, declined=declined, must=must)
    return _of_claude(add_effort(plain, options, dialect))


def _of_claude(thoughts: ClaudeThinking, *, is_claude: bool = False) -> Thinking:
    """Return Claude's thinking as fields for `additionalModelRequestFields`."""
    config: dict[str, JsonValue] = {"thinking": thoughts.config} if thoughts.config else {}
    output: dict[str, JsonValue] = (
        {"output_config": {"effort": thoughts.effort}} if thoughts.effort else {}
    )
    return Thinking(fields={**config, **output}, adapted=thoughts.is_adapted, is_claude=is_claude)


def _effort(options: ReasoningOptions, target: Target) -> tuple[str | None, bool]:
    """Return the nearest effort that the model supports, and whether that is the requested
    effort.
    """
    effort = effort_wanted(options)
    if effort is None:
        return None, True
    nearest = nearest_effort(effort, target.dialect.efforts)
    return nearest, nearest == effort and options.tokens_max is None


def _budget(request: GenerationRequest, options: ReasoningOptions, target: Target) -> Thinking:
    """Return thinking with a token budget that leaves room for an answer in the output limit."""
    room = target.limited(request.output_tokens_max) or target.output_tokens_max
    budget = max(tokens_wanted(options), _BUDGET_TOKENS_MIN)
    if room is not None:
        budget = min(budget, room - 1)
    if budget < _BUDGET_TOKENS_MIN or _lost_its_thoughts(request.messages):
        return Thinking(adapted=True)
    return Thinking(
        fields={"thinking": {"type": "enabled", "budget_tokens": budget}},
        adapted=options.tokens_max is not None and options.tokens_max != budget,
        output_tokens_max=room,
        is_claude=True,
    )


def forces_a_call(request: GenerationRequest) -> bool:
    """Return whether the caller forces a tool call."""
    choice = request.tool_choice
    return choice is not None and choice.mode in ("required", "named")


def _lost_its_thoughts(messages: Sequence[Message]) -> bool:
    """Return whether the last results follow an assistant turn without its signed reasoning.

    Claude then refuses to think:
    https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking#preserving-thinking-blocks
    """
    turns = [message for message in messages if not isinstance(message, ToolMessage)]
    if not messages or not isinstance(messages[-1], ToolMessage) or not turns:
        return False
    last = turns[-1]
    if not isinstance(last, AssistantMessage):
        return False
    calls = any(isinstance(part, ToolCall) for part in last.content)
    # `keep_readable` has already left out all reasoning that Claude did not sign.
    thought = any(isinstance(part, Reasoning) for part in last.content)
    return calls and not thought
