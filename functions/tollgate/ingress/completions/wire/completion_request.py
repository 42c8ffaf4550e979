"""The legacy completion request as clients send it.

https://platform.openai.com/docs/api-reference/completions/create, as the types of OpenAI's SDK for
Python state it (`openai.types.completion_create_params`, seen 2026-11-22)
"""

from typing import Annotated, Final

from pydantic import BeforeValidator, Field, Tag
from pydantic_core import PydanticCustomError

from tollgate.ingress.shared.wire.request_fields import (
    CHOICES_MAX,
    TOKENS_MAX,
    GuidedDecoding,
    ReplyFields,
    RoutingFields,
    SamplingFields,
)
from tollgate.ingress.shared.wire.request_model import by_shape

# All answers of a request are generated at once, each by a connection of its own.
ANSWERS_MAX: Final = 32
OUTPUT_TOKENS_DEFAULT: Final = 16
LOG_PROBS_MAX: Final = 5


def _refuse_tokens(value: object) -> object:
    """Raise if a prompt, or one of several, is a list of token ids."""
    if isinstance(value, list) and any(isinstance(each, int | list) for each in value):
        raise PydanticCustomError(
            "token_prompt",
            "must be text: token ids are not served, because every model has its own",
        )
    return value


_PromptText = Annotated[str, Field(min_length=1)]
Prompt = Annotated[
    Annotated[_PromptText, Tag("<string>")]
    | Annotated[
        list[_PromptText],
        Field(min_length=1, max_length=ANSWERS_MAX, fail_fast=True),
        Tag("<array>"),
    ],
    by_shape("a string or an array of strings"),
]


class CompletionRequest(GuidedDecoding, ReplyFields, SamplingFields, RoutingFields):
    """The body of POST /v1/completions. Null means the same as leaving a field out."""

    prompt: Annotated[Prompt, BeforeValidator(_refuse_tokens)] = Field(
        description="A text, or several that are answered each by itself."
    )
    max_tokens: Annotated[int, Field(ge=1, le=TOKENS_MAX)] | None = Field(
        default=None, description=f"{OUTPUT_TOKENS_DEFAULT} if it is left out, as OpenAI's."
    )
    best_of: Annotated[int, Field(ge=1, le=CHOICES_MAX)] | None = Field(
        default=None, description="No other value than that of `n`."
    )
    echo: bool | None = Field(
        default=None,
        description="Puts the prompt before its answer. Beside `logprobs` only models of servers "
        "that know the log probabilities of a prompt take it.",
    )
    suffix: str | None = Field(
        default=None,
        description="The text after the gap to fill; only models that fill gaps take it.",
    )
    logprobs: Annotated[int, Field(ge=0, le=LOG_PROBS_MAX)] | None = Field(
        default=None, description="The number of alternatives for each token."
    )
