"""How a model on Bedrock is asked to think: fields of its family, beside Converse's own.

Claude: https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-extended-thinking.html,
Nova: https://docs.aws.amazon.com/nova/latest/nova2-userguide/extended-thinking.html. Which family a
model is of, and which words it knows, is data: its endpoint's dialect.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field
from pydantic import JsonValue

from tollgate.core.content import Reasoning, ToolCall
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    ReasoningOptions,
    ToolMessage,
)
from tollgate.providers.base import Target
from tollgate.providers.efforts import effort_wanted, nearest, tokens_wanted, wants_thoughts

_BUDGET_TOKENS_MIN: Final = 1024


class Thinking(Struct, frozen=True, kw_only=True):
    """`fields` of the model's family; `adapted` if they are not what the caller asked for.

    `output_tokens_max` is a limit that Claude needs beside a budget, where the caller set none.
    """

    fields: dict[str, JsonValue] = field(default_factory=dict)
    adapted: bool = False
    output_tokens_max: int | None = None

    @property
    def is_claude(self) -> bool:
        """Whether Claude thinks, which it does at its own temperature only."""
        return "thinking" in self.fields


def thinking(request: GenerationRequest, target: Target) -> Thinking:
    """What to ask for, which is nothing where the caller leaves it open."""
    wanted = request.reasoning
    asked = None if wanted is None else wants_thoughts(wanted)
    if wanted is None or not asked:
        return Thinking()
    if "reasoning" not in target.supports:
        return Thinking(adapted=True)
    match target.dialect.reasoning:
        case "claude_budget" | "claude_adaptive" if _forces_a_call(request):
            # Claude refuses to think where it must call.
            return Thinking(adapted=True)
        case "claude_budget":
            return _budget(request, wanted, target)
        case "claude_adaptive":
            effort, exact = _effort(wanted, target)
            output: dict[str, JsonValue] = {"output_config": {"effort": effort}} if effort else {}
            return Thinking(fields={"thinking": {"type": "adaptive"}, **output}, adapted=not exact)
        case "nova":
            effort, exact = _effort(wanted, target)
            config: dict[str, JsonValue] = {"maxReasoningEffort": effort} if effort else {}
            return Thinking(
                fields={"reasoningConfig": {"type": "enabled", **config}}, adapted=not exact
            )
        case "effort":
            effort, exact = _effort(wanted, target)
            return Thinking(
                fields={"reasoning_effort": effort} if effort else {}, adapted=not exact
            )
        case _:
            return Thinking(adapted=True)


def _effort(wanted: ReasoningOptions, target: Target) -> tuple[str | None, bool]:
    """The effort in words of the model, and whether it is the one that was asked for."""
    effort = effort_wanted(wanted)
    if effort is None:
        return None, True
    known = nearest(effort, target.dialect.efforts)
    return known, known == effort and wanted.tokens_max is None


def _budget(request: GenerationRequest, wanted: ReasoningOptions, target: Target) -> Thinking:
    """A budget is part of the output: it must leave room for an answer."""
    limits = (request.output_tokens_max, target.output_tokens_max)
    room = min((limit for limit in limits if limit is not None), default=None)
    budget = max(tokens_wanted(wanted), _BUDGET_TOKENS_MIN)
    if room is not None:
        budget = min(budget, room - 1)
    if budget < _BUDGET_TOKENS_MIN or _lost_its_thoughts(request.messages):
        return Thinking(adapted=True)
    return Thinking(
        fields={"thinking": {"type": "enabled", "budget_tokens": budget}},
        adapted=wanted.tokens_max is not None and wanted.tokens_max != budget,
        output_tokens_max=room,
    )


def _forces_a_call(request: GenerationRequest) -> bool:
    choice = request.tool_choice
    return choice is not None and choice.mode in ("required", "named")


def _lost_its_thoughts(messages: Sequence[Message]) -> bool:
    """Whether results follow a turn whose signed reasoning did not come back: Claude refuses.

    https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking#preserving-thinking-blocks
    """
    said = [message for message in messages if not isinstance(message, ToolMessage)]
    if not messages or not isinstance(messages[-1], ToolMessage) or not said:
        return False
    last = said[-1]
    if not isinstance(last, AssistantMessage):
        return False
    calls = any(isinstance(part, ToolCall) for part in last.content)
    signed = any(isinstance(part, Reasoning) and "bedrock" in part.opaque for part in last.content)
    return calls and not signed
