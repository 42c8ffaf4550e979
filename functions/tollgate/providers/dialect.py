"""The closed set of differences that a row of an OpenAI-like provider may state.

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


class Dialect(BaseModel):
    """How an OpenAI-like server departs from OpenAI; the defaults are the conservative choice.

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
