"""The options of a chat completion request: output format, reasoning, guided decoding.

https://platform.openai.com/docs/api-reference/chat/create (2026-08-21), OpenRouter's `reasoning`
(https://openrouter.ai/docs/use-cases/reasoning-tokens) and vLLM's extra parameters
(https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html), both seen 2026-11-21.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, Field, Tag

from tollgate.core.request import Effort
from tollgate.ingress.chat_completions.wire.request_model import Json, Name, Wire, shape, tag_of

_TOKENS_MAX: Final = 2**31 - 1
_TEXT_LENGTH_MAX: Final = 65_536
_GUIDED_CHOICES_MAX: Final = 1_024

GuidedText = Annotated[str, Field(min_length=1, max_length=_TEXT_LENGTH_MAX)]
ObjectOrText = Annotated[
    Annotated[Json, Tag("<object>")] | Annotated[GuidedText, Tag("<string>")],
    Discriminator(
        shape,
        custom_error_type="object_or_text_shape",
        custom_error_message="must be an object or a string",
    ),
]


class TextFormat(Wire):
    """An answer in plain text."""

    type: Literal["text"]


class JsonObjectFormat(Wire):
    """An answer that is a JSON object; Together and Fireworks take a schema here, too."""

    type: Literal["json_object"]
    json_schema: Json | None = Field(default=None, alias="schema")


class JsonSchema(Wire):
    """A schema, and whether it is enforced."""

    name: Name | None = None
    description: str | None = None
    json_schema: Json | None = Field(default=None, alias="schema")
    strict: bool | None = None


class JsonSchemaFormat(Wire):
    """An answer that a JSON Schema describes: under `json_schema.schema`, or bare."""

    type: Literal["json_schema"]
    json_schema: JsonSchema | None = None
    bare_schema: Json | None = Field(default=None, alias="schema")


ResponseFormat = Annotated[
    Annotated[TextFormat, Tag("<text>")]
    | Annotated[JsonObjectFormat, Tag("<json_object>")]
    | Annotated[JsonSchemaFormat, Tag("<json_schema>")],
    Discriminator(
        lambda value: tag_of(value, "type", "<text>"),
        custom_error_type="unknown_type",
        custom_error_message="must be 'text', 'json_object' or 'json_schema'",
    ),
]


class Reasoning(Wire):
    """The amount of reasoning, by effort or by tokens, and whether the answer shows it."""

    effort: Effort | None = None
    max_tokens: Annotated[int, Field(ge=0, le=_TOKENS_MAX)] | None = None
    exclude: bool | None = None
    enabled: bool | None = None


class GuidedDecoding(Wire):
    """Fields that only servers like vLLM know; they reach those servers unchanged."""

    chat_template: GuidedText | None = None
    chat_template_kwargs: Json | None = None
    mm_processor_kwargs: Json | None = None
    guided_json: ObjectOrText | None = None
    guided_regex: GuidedText | None = None
    guided_choice: (
        Annotated[list[Any], Field(min_length=1, max_length=_GUIDED_CHOICES_MAX)] | None
    ) = None
    guided_grammar: GuidedText | None = None
    structural_tag: ObjectOrText | None = None
    guided_decoding_backend: GuidedText | None = None
    guided_whitespace_pattern: GuidedText | None = None
