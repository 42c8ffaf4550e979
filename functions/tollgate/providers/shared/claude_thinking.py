"""Claude's thinking settings on Anthropic and Bedrock, which depend on the model generation.

Each codec handles output limits, token budgets and lost signatures itself (decision 236).
"""

from msgspec import Struct, field
from msgspec.structs import replace

from tollgate.core.json_value import JsonValue
from tollgate.core.request import Effort, ReasoningOptions
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.shared.efforts import effort_wanted, nearest_effort


class ClaudeThinking(Struct, frozen=True, kw_only=True):
    """The thinking settings of one request."""

    config: dict[str, JsonValue] = field(default_factory=dict)
    """The value of the field `thinking`."""
    effort: Effort | None = None
    """The value of the field `output_config.effort`."""
    is_on: bool = False
    """True if the model may think."""
    is_adapted: bool = False
    """True if the thinking differs from what the caller requested."""


def turn_thinking_off(
    dialect: Dialect, *, declined: bool, must: bool, is_adapted: bool = False
) -> ClaudeThinking:
    """Return the settings for no thinking, or for the least that the model generation allows.

    `declined` means that the caller wants no thinking. `must` means that another part of the
    request excludes thinking.
    """
    if dialect.reasoning not in ("claude_budget", "claude_adaptive"):
        # Only Claude models have these settings.
        return ClaudeThinking(is_adapted=is_adapted)
    match dialect.claude.thinking_off:
        case "absent":
            return ClaudeThinking(is_adapted=is_adapted)
        case "never":
            effort = nearest_effort("low", dialect.efforts) if declined else None
            return ClaudeThinking(effort=effort, is_on=True, is_adapted=declined)
        case word:
            if declined or must:
                return ClaudeThinking(config={"type": word}, is_adapted=is_adapted)
            return ClaudeThinking(is_on=True)


def add_effort(
    plain: ClaudeThinking, options: ReasoningOptions, dialect: Dialect
) -> ClaudeThinking:
    """Return the settings `plain`, which turn thinking off, with the requested effort for the
    answer.

    Claude accepts no effort above `high` while its thinking is turned off. Generations that think
    with a token budget have no effort setting.
    """
    if dialect.reasoning != "claude_adaptive":
        return replace(plain, is_adapted=True)
    if options.effort is None:
        return plain
    efforts = dialect.efforts
    if plain.config:
        efforts = tuple(effort for effort in efforts if effort not in ("xhigh", "max"))
    effort = nearest_effort(options.effort, efforts)
    return replace(plain, effort=effort, is_adapted=plain.is_adapted or effort != options.effort)


def think_by_effort(options: ReasoningOptions, dialect: Dialect) -> ClaudeThinking:
    """Return the settings for thinking with the requested effort.

    Claude 4.6 sends a summary of its thoughts by default. Later generations, on Bedrock too, send a
    summary only if `display` requests one: https://github.com/theopenco/llmgateway/pull/2593 (seen
    2026-11-21).
    """
    requested = effort_wanted(options)
    effort = None if requested is None else nearest_effort(requested, dialect.efforts)
    display: dict[str, JsonValue] = {"display": "omitted" if options.exclude else "summarized"}
    return ClaudeThinking(
        config={"type": "adaptive", **({} if options.display_open else display)},
        effort=effort,
        is_on=True,
        is_adapted=options.tokens_max is not None or effort != requested,
    )
