"""The closed set of differences that a row of an OpenAI-like provider, or a model, may state.

A difference that needs code does not belong here: it is a codec's.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

# Parameters of a caller that some OpenAI-like servers refuse with 400 instead of ignoring.
Parameter = Literal[
    "frequency_penalty",
    "logit_bias",
    "min_p",
    "parallel_tool_calls",
    "presence_penalty",
    "repetition_penalty",
    "seed",
    "stop",
    "temperature",
    "top_k",
    "top_p",
    "user",
]


def _as_a_set(names: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """In one order, since a catalog is named by the hash of what it says."""
    return tuple(sorted(set(names)))


class GeminiDialect(BaseModel):
    """How one Gemini model departs from the others; the defaults are a model that does not think.

    A model is told how much to think by one of `thinking_levels`, or else by a number of tokens
    from `thinking_tokens_min` to `thinking_tokens_max`; `thinking_stops` if also by none.
    `signed_calls`: calls that come back must be signed. `schema_beside_tools`: the answer may have
    a schema in a request that offers tools.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    thinking_levels: tuple[Literal["minimal", "low", "medium", "high"], ...] = ()
    thinking_tokens_min: int = 0
    thinking_tokens_max: int | None = None
    thinking_stops: bool = False
    signed_calls: bool = False
    schema_beside_tools: bool = False


class Dialect(BaseModel):
    """How a server departs from its format; the defaults are the conservative choice for OpenAI's.

    `refuses` names parameters that are left out and reported as adapted. `reasoning_field` is where
    the server wants earlier reasoning back on assistant turns, None if nowhere.
    `tool_call_id_length`: the server takes only ids of exactly that many letters and digits.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    output_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    developer_role: bool = False
    stream_usage: bool = True
    refuses: Annotated[tuple[Parameter, ...], AfterValidator(_as_a_set)] = (
        "min_p",
        "repetition_penalty",
        "top_k",
    )
    reasoning_field: Literal["reasoning", "reasoning_content"] | None = None
    tool_call_id_length: int | None = None
    gemini: GeminiDialect = GeminiDialect()
