"""The model for a legacy completion request.

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
    PresetFields,
    ReplyFields,
    SamplingFields,
)
from tollgate.ingress.shared.wire.request_model import by_shape

# The answers to a request are generated in parallel, each over its own connection.
ANSWERS_MAX: Final = 32
OUTPUT_TOKENS_DEFAULT: Final = 16
LOG_PROBS_MAX: Final = 5


def _refuse_tokens(value: object) -> object:
    """Raise PydanticCustomError if a prompt is a list of token ids."""
    if isinstance(value, list) and any(isinstance(entry, int | list) for entry in value):
        raise PydanticCustomError(
            "token_prompt",
            "must be text: token ids are not supported, because they differ between models",
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


class CompletionRequest(GuidedDecoding, ReplyFields, SamplingFields, PresetFields):
    """The body of POST /v1/completions; null means the same as omitting a field."""

    prompt: Annotated[Prompt, BeforeValidator(_refuse_tokens)] = Field(
        description="One or more texts, which are answered independently."
    )
    max_tokens: Annotated[int, Field(ge=1, le=TOKENS_MAX)] | None = Field(
        default=None, description=f"{OUTPUT_TOKENS_DEFAULT} by default, as with OpenAI."
    )
    best_of: Annotated[int, Field(ge=1, le=CHOICES_MAX)] | None = Field(
        default=None, description="Must be equal to `n`."
    )
    echo: bool | None = Field(
        default=None,
        description="True repeats the prompt before the answer. With `logprobs`, the server "
        "must return log probabilities for prompts.",
    )
    suffix: str | None = Field(
        default=None,
        description="The text after the gap to fill; only some models support this field.",
    )
    logprobs: Annotated[int, Field(ge=0, le=LOG_PROBS_MAX)] | None = Field(
        default=None, description="The number of alternative tokens for each token."
    )
