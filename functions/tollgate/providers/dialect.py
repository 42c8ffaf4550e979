"""The closed set of differences that a row of an OpenAI-like provider may state.

A difference that needs code does not belong here: it is a codec's. An endpoint may depart from its
row, since models of one provider differ too: those that reason refuse a temperature, for example.
"""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

from tollgate.core.request import Effort

# Parameters of a caller that some OpenAI-like servers refuse with 400 instead of ignoring.
Parameter = Literal[
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "min_p",
    "parallel_tool_calls",
    "presence_penalty",
    "prompt_cache_key",
    "repetition_penalty",
    "seed",
    "service_tier",
    "stop",
    "temperature",
    "top_k",
    "top_logprobs",
    "top_p",
    "user",
]

# From the least to the most.
EFFORTS: Final[tuple[Effort, ...]] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def _as_a_set(names: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """In one order, since a catalog is named by the hash of what it says."""
    return tuple(sorted(set(names)))


def _by_strength(efforts: tuple[Effort, ...]) -> tuple[Effort, ...]:
    return tuple(effort for effort in EFFORTS if effort in efforts)


# `{model}` stands for the upstream name; Azure's has its API version in a query.
Path = Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._~/{}-]*(\?[A-Za-z0-9=&._-]+)?$")]


class Dialect(BaseModel):
    """How a server departs from its format; the defaults are the conservative choice.

    `path` is in place of the format's own, `key_header` where the key goes.
    `refuses` names parameters that are left out and reported as adapted.
    `message_names`: the server takes `name` on messages. `any_tool`: its word for a forced call.
    `reasoning_field` is where the server wants earlier reasoning back on assistant turns, None if
    nowhere: a field, `<think>` tags in the text, or Mistral's content lists.
    `reasoning` is how the server is told to think, None if it cannot be: by `reasoning_effort`, by
    OpenRouter's `reasoning` object, by DeepSeek's and Z.ai's `thinking` switch, on Bedrock by
    Claude's budget of tokens or its adaptive effort, or Nova's; `efforts` are the words it knows.
    `reasoning_summaries`: it may be asked to sum up its thoughts, which OpenAI allows to verified
    organisations only.
    `output_format` is the most that the server enforces of a wanted form; the rest is emulated.
    `guided`: vLLM's own fields are understood. `native_choices`: so is `n`.
    `cache_marks`: `cache_control` on parts is. `tool_call_id_length`: only ids of exactly that many
    letters and digits are.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path | None = None
    key_header: Literal["authorization", "api-key"] = "authorization"
    output_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    developer_role: bool = False
    message_names: bool = True
    any_tool: Literal["required", "any"] = "required"
    stream_usage: bool = True
    refuses: Annotated[tuple[Parameter, ...], AfterValidator(_as_a_set)] = (
        "min_p",
        "prompt_cache_key",
        "repetition_penalty",
        "service_tier",
        "top_k",
    )
    reasoning_field: (
        Literal[
            "reasoning", "reasoning_content", "reasoning_details", "think_tags", "thinking_parts"
        ]
        | None
    ) = None
    reasoning: (
        Literal["effort", "object", "thinking", "claude_budget", "claude_adaptive", "nova"] | None
    ) = None
    reasoning_summaries: bool = False
    efforts: Annotated[tuple[Effort, ...], AfterValidator(_by_strength)] = ("low", "medium", "high")
    output_format: Literal["json_schema", "json_object"] | None = "json_schema"
    guided: bool = False
    native_choices: bool = False
    cache_marks: bool = False
    tool_call_id_length: int | None = None
