"""Models for decision requests and replies.

https://developers.openai.com/api/reference/resources/decisions, as in openai 3.52.0 (2026-11-27).
"""

from typing import Annotated, Final, Literal, TypeVar

from pydantic import AfterValidator, Field, Tag
from pydantic_core import PydanticCustomError

from tollgate.ingress.shared.wire.reply_models import (
    Answer,
    InputTokensDetails,
    OutputTokensDetails,
    TollgateMetadata,
)
from tollgate.ingress.shared.wire.request_fields import EndUser, RoutingFields
from tollgate.ingress.shared.wire.request_model import Json, String, Wire, by_field, by_shape

QUESTIONS_MAX: Final = 400
ENTRIES_MAX: Final = 255
# Of choices and of levels.
_ENTRIES_MIN: Final = 2

_Entry = TypeVar("_Entry")

_Text = Annotated[str, Field(min_length=1)]


class EvidencePart(Wire):
    """A part of a message, of an output or of instructions; parts are sent on unchanged."""

    type: Literal["input_text", "input_image", "input_json", "output_text", "refusal"]
    text: str | None = None
    image_url: str | None = Field(default=None, description="An http(s) URL, or a data URL.")
    data: Json | list[Json] | None = None


Parts = Annotated[
    Annotated[_Text, Tag("<string>")]
    | Annotated[list[EvidencePart], Field(min_length=1), Tag("<array>")],
    by_shape("a string or an array of parts"),
]


class EvidenceItem(Wire):
    """A message, a call, or the output of a call; items are sent on unchanged."""

    type: Literal[
        "message",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
    ] = "message"
    role: Literal["user", "developer", "system", "assistant"] | None = None
    content: Parts | None = None
    call_id: str | None = None
    output: Parts | None = None


class Asked(Wire):
    """The fields of every question."""

    instructions: Parts
    name: str | None = Field(default=None, description="Repeated in the answer.")


class PredicateQuestion(Asked):
    """A statement about the input that is true or false."""

    type: Literal["predicate"]


class OfferedChoice(Wire):
    """A value to choose; a string differs from a boolean with the same text."""

    value: Annotated[String | Annotated[bool, Tag("<boolean>")], by_shape("a string or a boolean")]
    description: str | None = None


def _at_least_two(entries: list[_Entry]) -> list[_Entry]:
    if len(entries) < _ENTRIES_MIN:
        raise PydanticCustomError("too_few", "must have at least 2 entries")
    return entries


def _distinct(choices: list[OfferedChoice]) -> list[OfferedChoice]:
    if len({(type(choice.value), choice.value) for choice in choices}) < len(choices):
        raise PydanticCustomError("not_unique", "must not have the same value twice")
    return choices


class ChoiceQuestion(Asked):
    """A question with choices, of which one fits the input."""

    type: Literal["choice"]
    choices: Annotated[
        list[OfferedChoice],
        Field(max_length=ENTRIES_MAX, fail_fast=True),
        AfterValidator(_at_least_two),
        AfterValidator(_distinct),
    ]


class ScoreLevel(Wire):
    """A level of a scale."""

    label: _Text
    description: str | None = None


class ScoreQuestion(Asked):
    """A scale of levels for the input, from the lowest to the highest."""

    type: Literal["score"]
    levels: Annotated[
        list[ScoreLevel],
        Field(max_length=ENTRIES_MAX, fail_fast=True),
        AfterValidator(_at_least_two),
    ]


_Question = Annotated[
    Annotated[PredicateQuestion, Tag("<predicate>")]
    | Annotated[ChoiceQuestion, Tag("<choice>")]
    | Annotated[ScoreQuestion, Tag("<score>")],
    by_field("type", "predicate", "choice", "score"),
]
_Evidence = Annotated[
    Annotated[_Text, Tag("<string>")]
    | Annotated[list[EvidenceItem], Field(min_length=1, fail_fast=True), Tag("<array>")],
    by_shape("a string or an array of messages and calls"),
]


class DecisionBody(EndUser, RoutingFields):
    """The body of POST /v1/decisions; null means the same as omitting a field."""

    input: _Evidence = Field(description="The text or conversation that all questions are about.")
    questions: Annotated[
        list[_Question], Field(min_length=1, max_length=QUESTIONS_MAX, fail_fast=True)
    ]
    prompt_cache_key: str | None = None
    prompt_cache_options: Json | None = None
    safety_identifier: Annotated[str, Field(max_length=512)] | None = Field(
        default=None, description="Another name for `user`."
    )


class GivenAnswer(Answer):
    """The fields of every answer."""

    name: str | None = Field(description="The question's name; null if it has none.")


class PredicateAnswer(GivenAnswer):
    """The probability that a statement is true."""

    type: Literal["predicate"]
    probability: float


class ValueProbability(Answer):
    """The probability of a choice."""

    value: str | bool
    probability: float


class ChoiceAnswer(GivenAnswer):
    """The likeliest choice."""

    type: Literal["choice"]
    choice: str | bool
    confidence: float
    probabilities: list[ValueProbability]


class LevelProbability(Answer):
    """The probability of a level; `value` is its index."""

    value: int
    label: str
    probability: float


class ScoreAnswer(GivenAnswer):
    """The mean of the levels' indexes, weighted by their probabilities."""

    type: Literal["score"]
    score: float
    confidence: float
    probabilities: list[LevelProbability]


class RefusedAnswer(GivenAnswer):
    """The model declined to answer the question."""

    type: Literal["refusal"]


class DecisionUsage(Answer):
    """Tokens; answers have no output tokens."""

    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int


class DecisionReply(Answer):
    """The answers, in the order of the questions."""

    model: str
    answers: list[
        Annotated[
            PredicateAnswer | ChoiceAnswer | ScoreAnswer | RefusedAnswer,
            Field(discriminator="type"),
        ]
    ]
    usage: DecisionUsage
    tollgate_metadata: TollgateMetadata | None = None
