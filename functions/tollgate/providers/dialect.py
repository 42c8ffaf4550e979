"""The closed set of differences that a row of an OpenAI-like provider, or a model, may state.

A difference that needs code does not belong here: it is a codec's. An endpoint may depart from its
row, since models of one provider differ too: those that reason refuse a temperature, for example.
"""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from tollgate.core.request import Effort
from tollgate.providers.parameters import REFUSED_BY_DEFAULT, Parameter

# Who speaks the Messages API: Anthropic, Vertex AI, or Bedrock's InvokeModel.
ClaudeCarrier = Literal["anthropic", "vertex", "bedrock"]

# From the least to the most.
EFFORTS: Final[tuple[Effort, ...]] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def _as_a_set(names: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """In one order, since a catalog is named by the hash of what it says."""
    return tuple(sorted(set(names)))


def _by_strength(efforts: tuple[Effort, ...]) -> tuple[Effort, ...]:
    return tuple(effort for effort in EFFORTS if effort in efforts)


class GeminiDialect(BaseModel):
    """How one Gemini model departs from the others.

    It may be told to think from `thinking_tokens_min` to `thinking_tokens_max` tokens, where it is
    told by tokens. `signed_calls`: calls that come back must be signed. `schema_beside_tools`: the
    answer may have a schema in a request that offers tools. `searches_billed_once`: whatever it
    searched for is billed as one search.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    thinking_tokens_min: int = 128
    thinking_tokens_max: int = 24576
    signed_calls: bool = False
    schema_beside_tools: bool = False
    searches_billed_once: bool = False


class ClaudeDialect(BaseModel):
    """How one generation of Claude departs from the others; the defaults are what the newest take.

    `thinking_off` is how thinking is declined: by leaving it out, by a word, or not at all.
    `forced_calls_while_thinking`: a call may be forced all the same. `temperature_and_top_p`: both
    are taken at once. `prefill`: a last assistant message is continued. `system_turns`: system
    messages may stand between others.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    thinking_off: Literal["absent", "disabled", "between_tools", "never"] = "never"
    forced_calls_while_thinking: bool = False
    temperature_and_top_p: bool = False
    prefill: bool = False
    system_turns: bool = False


# `{model}` stands for the upstream name; Azure's has its API version in a query.
Path = Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._~/{}-]*(\?[A-Za-z0-9=&._-]+)?$")]


class Dialect(BaseModel):
    """How a server departs from its format; the defaults are the conservative choice.

    `path` is in place of the format's own.
    `refuses` names parameters that are left out and reported as adapted.
    `message_names`: the server takes `name` on messages. `any_tool`: its word for a forced call.
    `reasoning_field` is where the server wants earlier reasoning back on assistant turns, None if
    nowhere: a field, `<think>` tags in the text, or Mistral's content lists.
    `reasoning` is how the server is told to think, None if it cannot be: by `reasoning_effort`, by
    OpenRouter's `reasoning` object, by DeepSeek's and Z.ai's `thinking` switch, by Claude's budget
    of tokens or its adaptive effort, by Nova's effort, by Gemini's budget or level; `efforts` are
    the words that it knows, `none` among them if it can be told not to. `reasoning_summaries`: it
    may be asked to sum up its thoughts, which OpenAI allows to verified organisations only.
    `output_format` is the most that the server enforces of a wanted form; the rest is emulated.
    `guided`: vLLM's own fields are understood. `native_choices`: so is `n`.
    `fetches_urls` is what the server takes by URL; the gateway fetches the rest.
    `cache_marks`: `cache_control` on parts is; `cached_tools`: on tools too. `tool_call_id_length`:
    only ids of exactly that many letters and digits are. `claude_carrier`: who speaks Anthropic's
    format.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    path: Path | None = None
    output_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    developer_role: bool = False
    message_names: bool = True
    any_tool: Literal["required", "any"] = "required"
    stream_usage: bool = True
    refuses: Annotated[tuple[Parameter, ...], AfterValidator(_as_a_set)] = REFUSED_BY_DEFAULT
    reasoning_field: (
        Literal[
            "reasoning", "reasoning_content", "reasoning_details", "think_tags", "thinking_parts"
        ]
        | None
    ) = None
    reasoning: (
        Literal[
            "effort",
            "object",
            "thinking",
            "claude_budget",
            "claude_adaptive",
            "nova",
            "gemini_budget",
            "gemini_level",
        ]
        | None
    ) = None
    reasoning_summaries: bool = False
    efforts: Annotated[tuple[Effort, ...], AfterValidator(_by_strength)] = ("low", "medium", "high")
    output_format: Literal["json_schema", "json_object"] | None = "json_schema"
    guided: bool = False
    native_choices: bool = False
    fetches_urls: Annotated[
        tuple[Literal["file", "image"], ...],
        AfterValidator(lambda kinds: tuple(sorted(set(kinds)))),
    ] = ()
    cache_marks: bool = False
    cached_tools: bool = True
    tool_call_id_length: int | None = None
    gemini: GeminiDialect = Field(default_factory=GeminiDialect)
    claude: ClaudeDialect = Field(default_factory=ClaudeDialect)
    claude_carrier: ClaudeCarrier = "anthropic"
