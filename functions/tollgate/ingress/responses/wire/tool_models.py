"""Models for tools and the tool choice in a Responses request."""

from typing import Annotated, Final, Literal

from pydantic import Discriminator, Field, Tag

from tollgate.ingress.responses.wire.server_tool_models import SERVER_TOOL_TYPES, ServerToolType
from tollgate.ingress.shared.wire.request_fields import TOOLS_MAX, AnyText, Grammar
from tollgate.ingress.shared.wire.request_model import Json, Name, Wire, by_field, shape

# Tools that use the caller's data or machine are refused, because the answer would be wrong without
# them.
REFUSED_TOOLS: Final = frozenset(
    {
        "apply_patch",
        "code_interpreter",
        "computer",
        "computer_use",
        "computer_use_preview",
        "file_search",
        "mcp",
        "shell",
    }
)


class FunctionTool(Wire):
    """A function that the caller runs."""

    type: Literal["function"]
    name: Name
    description: str | None = None
    parameters: Json | None = None
    strict: bool | None = None


class GrammarText(Grammar):
    """Text that must match a grammar."""

    type: Literal["grammar"]


class CustomTextTool(Wire):
    """A caller's tool with text input."""

    type: Literal["custom"]
    name: Name
    description: str | None = None
    format: (
        Annotated[
            Annotated[AnyText, Tag("<text>")] | Annotated[GrammarText, Tag("<grammar>")],
            by_field("type", "text", "grammar"),
        ]
        | None
    ) = None


NestedTool = Annotated[
    Annotated[FunctionTool, Tag("<function>")] | Annotated[CustomTextTool, Tag("<custom>")],
    by_field("type", "function", "custom"),
]


class NamespaceTool(Wire):
    """A named group of tools, as sent by Codex."""

    type: Literal["namespace"]
    name: Name
    description: str | None = None
    tools: Annotated[list[NestedTool], Field(min_length=1, max_length=TOOLS_MAX)]


class HostedTool(Wire):
    """A tool of an unknown type, or a tool that only OpenAI runs; it is dropped."""

    type: Name


_RUN_BY_CALLERS: Final = ("custom", "function", "namespace")


def _tool_tag(value: object) -> str:
    type_ = value.get("type") if isinstance(value, dict) else "function"
    if type_ in _RUN_BY_CALLERS:
        return f"<{type_}>"
    is_run_here = isinstance(type_, str) and type_ in SERVER_TOOL_TYPES
    return "<server>" if is_run_here else "<hosted>"


Tool = Annotated[
    Annotated[FunctionTool, Tag("<function>")]
    | Annotated[CustomTextTool, Tag("<custom>")]
    | Annotated[NamespaceTool, Tag("<namespace>")]
    | Annotated[ServerToolType, Tag("<server>")]
    | Annotated[HostedTool, Tag("<hosted>")],
    Discriminator(_tool_tag),
]


class ChosenTool(Wire):
    """A tool choice that requires one tool, by type and name."""

    type: Name
    name: Name | None = Field(default=None, description="For a function or a custom tool.")
    namespace: Name | None = None


class AllowedTools(Wire):
    """A tool choice that allows some of the tools."""

    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"] = "auto"
    tools: Annotated[list[ChosenTool], Field(max_length=TOOLS_MAX)]


def _tag_of_choice(value: object) -> str | None:
    is_allowed = isinstance(value, dict) and value.get("type") == "allowed_tools"
    return "<allowed>" if is_allowed else shape(value)


ToolChoice = Annotated[
    Annotated[Literal["auto", "none", "required"], Tag("<string>")]
    | Annotated[AllowedTools, Tag("<allowed>")]
    | Annotated[ChosenTool, Tag("<object>")],
    Discriminator(
        _tag_of_choice,
        custom_error_type="tool_choice_shape",
        custom_error_message="must be 'auto', 'none', 'required' or an object",
    ),
]
