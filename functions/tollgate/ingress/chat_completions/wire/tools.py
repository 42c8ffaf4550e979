"""Models for tools and the tool choice in a chat completion request.

https://platform.openai.com/docs/api-reference/chat/create (2026-11-22)
"""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from tollgate.ingress.shared.wire.request_fields import TOOLS_MAX, AnyText, Grammar
from tollgate.ingress.shared.wire.request_model import (
    CacheControl,
    Json,
    Name,
    Wire,
    by_field,
    shape,
    tag_of,
)


class FunctionDefinition(Wire):
    """A function that the model may call."""

    name: Name
    description: str | None = None
    parameters: Json | None = Field(default=None, description="A JSON Schema.")
    strict: bool | None = None


class FunctionTool(Wire):
    """A caller's tool with JSON arguments."""

    type: Literal["function"]
    function: FunctionDefinition
    cache_control: CacheControl | None = None


class GrammarText(Wire):
    """Text that must match a grammar."""

    type: Literal["grammar"]
    grammar: Grammar


class CustomDefinition(Wire):
    """A tool that the model may call with text input."""

    name: Name
    description: str | None = None
    format: (
        Annotated[
            Annotated[AnyText, Tag("<text>")] | Annotated[GrammarText, Tag("<grammar>")],
            by_field("type", "text", "grammar"),
        ]
        | None
    ) = None


class CustomTool(Wire):
    """A caller's tool with text input."""

    type: Literal["custom"]
    custom: CustomDefinition
    cache_control: CacheControl | None = None


ToolDefinition = Annotated[
    Annotated[FunctionTool, Tag("<function>")] | Annotated[CustomTool, Tag("<custom>")],
    by_field("type", "function", "custom"),
]


class NamedTool(Wire):
    """The name of a tool."""

    name: Name


class FunctionChoice(Wire):
    """A tool choice that requires one function."""

    type: Literal["function"]
    function: NamedTool


class CustomChoice(Wire):
    """A tool choice that requires one tool with text input."""

    type: Literal["custom"]
    custom: NamedTool


ChosenTool = Annotated[
    Annotated[FunctionChoice, Tag("<function>")] | Annotated[CustomChoice, Tag("<custom>")],
    by_field("type", "function", "custom"),
]


class Allowance(Wire):
    """The tools that may be called, and whether one of them must be called."""

    mode: Literal["auto", "required"]
    tools: Annotated[list[ChosenTool], Field(min_length=1, max_length=TOOLS_MAX, fail_fast=True)]


class AllowedTools(Wire):
    """A tool choice that allows some of the tools."""

    type: Literal["allowed_tools"]
    allowed_tools: Allowance


def _choice(value: object) -> str | None:
    return tag_of(value, "type", "<function>") if isinstance(value, dict) else shape(value)


ToolChoice = Annotated[
    Annotated[Literal["auto", "none", "required"], Tag("<string>")]
    | Annotated[FunctionChoice, Tag("<function>")]
    | Annotated[CustomChoice, Tag("<custom>")]
    | Annotated[AllowedTools, Tag("<allowed_tools>")],
    Discriminator(
        _choice,
        custom_error_type="tool_choice_shape",
        custom_error_message="must be 'auto', 'none', 'required', a named tool or allowed tools",
    ),
]
