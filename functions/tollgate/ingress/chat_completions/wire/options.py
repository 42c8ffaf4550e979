"""Models for output format and reasoning options in a chat completion request.

https://platform.openai.com/docs/api-reference/chat/create (2026-08-21), OpenRouter's `reasoning`
(https://openrouter.ai/docs/use-cases/reasoning-tokens, 2026-11-21).
"""

from typing import Annotated, Literal

from pydantic import Field, Tag

from tollgate.core.request import Effort
from tollgate.ingress.shared.wire.request_fields import TOKENS_MAX
from tollgate.ingress.shared.wire.request_model import Json, Name, Wire, by_field


class TextFormat(Wire):
    """A plain text answer."""

    type: Literal["text"]


class JsonObjectFormat(Wire):
    """A JSON object as the answer; Together and Fireworks also accept a schema here."""

    type: Literal["json_object"]
    json_schema: Json | None = Field(default=None, alias="schema")


class JsonSchema(Wire):
    """A JSON Schema, and whether the answer must match it strictly."""

    name: Name | None = None
    description: str | None = None
    json_schema: Json | None = Field(default=None, alias="schema")
    strict: bool | None = None


class JsonSchemaFormat(Wire):
    """An answer that matches a JSON Schema, sent as `json_schema.schema` or as `schema`."""

    type: Literal["json_schema"]
    json_schema: JsonSchema | None = None
    bare_schema: Json | None = Field(default=None, alias="schema")


ResponseFormat = Annotated[
    Annotated[TextFormat, Tag("<text>")]
    | Annotated[JsonObjectFormat, Tag("<json_object>")]
    | Annotated[JsonSchemaFormat, Tag("<json_schema>")],
    by_field("type", "text", "json_object", "json_schema"),
]


class Reasoning(Wire):
    """The amount of reasoning, by effort or tokens, and whether the answer shows it."""

    effort: Effort | None = None
    max_tokens: Annotated[int, Field(ge=0, le=TOKENS_MAX)] | None = None
    exclude: bool | None = None
    enabled: bool | None = None
