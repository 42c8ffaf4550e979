"""Emulates structured output, guided decoding and free-text tools for servers that lack these
features.

An output schema becomes a tool that the model must call. `unwrapping` moves the arguments of this
call into the content of the answer, so the caller sees no tool. Guided decoding, which only servers
like vLLM have, becomes a schema if possible.
"""

from collections.abc import Mapping
from typing import Final, assert_never

import pydantic_core
from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.content import ToolCall
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.json_value import JsonObject, JsonValue
from tollgate.core.request import (
    AssistantContent,
    AssistantMessage,
    GenerationRequest,
    JsonOutput,
    Message,
    OutputFormat,
    SchemaOutput,
    Tool,
    ToolChoice,
)

OUTPUT_TOOL: Final = "give_final_answer"
_DESCRIPTION: Final = "Give the final answer. It is complete with this call; say nothing else."
CHOICE: Final = "choice"
TEXT: Final = "input"


class Wrapping(Struct, frozen=True, kw_only=True):
    """The emulation that must be undone in an answer."""

    tool: bool = False
    """True if the arguments of a call of OUTPUT_TOOL are the answer."""
    choice: bool = False
    """True if the answer is an object whose only field has a choice from `guided_choice`."""
    text_tools: frozenset[str] = frozenset()
    """The tools whose free text is the only field of an object."""


NOT_WRAPPED: Final = Wrapping()
_EMULATED: Final = frozenset({"guided_choice", "guided_json"})


def replace_guided(request: GenerationRequest) -> tuple[GenerationRequest, Wrapping]:
    """Return the request with a schema in place of guided decoding.

    Raises RequestError for guided fields that no schema can express, and for guided decoding
    together with another output format.
    """
    output: OutputFormat | None = None
    unknown = next((name for name in request.guided if name not in _EMULATED), None)
    if unknown is not None:
        raise _refused(unknown, "is not supported by this model's provider")
    for name, value in request.guided.items():
        if request.output_format is not None or output is not None:
            raise _refused(name, "cannot be combined with another output format")
        match name, value:
            case "guided_json", dict():
                output = SchemaOutput(name="guided", schema=value)
            case "guided_json", str():
                output = SchemaOutput(name="guided", schema=_schema(value))
            case "guided_choice", [_, *_]:
                schema = _object_of(CHOICE, {"enum": value})
                output = SchemaOutput(name="guided", schema=schema, strict=True)
            case _:
                raise _refused(name, "is neither a schema nor a list of choices")
    if output is None:
        return request, NOT_WRAPPED
    wrapping = Wrapping(choice="guided_choice" in request.guided)
    return replace(request, output_format=output, guided={}), wrapping


def replace_text_tools(request: GenerationRequest) -> tuple[GenerationRequest, frozenset[str]]:
    """Return the request with functions for its free-text tools, and the names of these tools.

    Calls of free-text tools in the history become function calls.
    """
    replaced = frozenset(tool.name for tool in request.tools if tool.text is not None)
    tools = tuple(map(_function_of_text, request.tools))
    messages = tuple(map(_with_functions_called, request.messages))
    return replace(request, tools=tools, messages=messages), replaced


def has_text_tools(request: GenerationRequest) -> bool:
    """Return whether a tool, or a call in the history, takes free text."""
    return any(tool.text is not None for tool in request.tools) or any(
        isinstance(part, ToolCall) and part.is_text
        for message in request.messages
        for part in message.content
    )


def _function_of_text(tool: Tool) -> Tool:
    if tool.text is None:
        return tool
    field: dict[str, JsonValue] = {"type": "string"}
    if (grammar := tool.text.grammar) is not None:
        # No server enforces a grammar for a function, so the model reads the grammar.
        field["description"] = f"Follows this {grammar.syntax} grammar:\n{grammar.definition}"
    return replace(tool, parameters=_object_of(TEXT, field), text=None)


def _with_functions_called(message: Message) -> Message:
    if not isinstance(message, AssistantMessage):
        return message
    return replace(message, content=tuple(map(_call_of_function, message.content)))


def _call_of_function(part: AssistantContent) -> AssistantContent:
    if not isinstance(part, ToolCall) or not part.is_text:
        return part
    arguments = pydantic_core.to_json({TEXT: part.arguments}).decode()
    return replace(part, arguments=arguments, is_text=False)


def use_output_tool(request: GenerationRequest) -> GenerationRequest:
    """Return the request with a forced tool in place of its output format.

    If the caller forces a call of its own tools, the output format is dropped.
    """
    if request.output_format is None:
        return request
    plain = replace(request, output_format=None)
    choice = request.tool_choice or ToolChoice(mode="auto")
    if request.tools and choice.mode in ("required", "named"):
        return plain
    if any(tool.name == OUTPUT_TOOL for tool in request.tools):
        raise _refused("tools", f"must not have a tool named {OUTPUT_TOOL}")
    answer = _tool(request.output_format)
    if not request.tools or choice.mode == "none":
        only = ToolChoice(mode="named", name=OUTPUT_TOOL)
        return replace(plain, tools=(answer,), tool_choice=only, parallel_tool_calls=None)
    forced = ToolChoice(mode="required")
    return replace(plain, tools=(*request.tools, answer), tool_choice=forced)


def _tool(output: OutputFormat) -> Tool:
    match output:
        case JsonOutput():
            return Tool(name=OUTPUT_TOOL, description=_DESCRIPTION, parameters={"type": "object"})
        case SchemaOutput():
            description = " ".join(filter(None, (_DESCRIPTION, output.description)))
            return Tool(
                name=OUTPUT_TOOL,
                description=description,
                parameters=output.schema,
                strict=output.strict,
            )
        case _:
            assert_never(output)


def _schema(text: str) -> JsonObject:
    try:
        schema: JsonValue = pydantic_core.from_json(text)
    except ValueError as invalid:
        raise _refused("guided_json", "is not JSON") from invalid
    if not isinstance(schema, dict):
        raise _refused("guided_json", "is not a schema")
    return schema


def _object_of(name: str, schema: dict[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return the schema of an object with a single field."""
    return {
        "type": "object",
        "properties": {name: schema},
        "required": [name],
        "additionalProperties": False,
    }


def _refused(param: str, what: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"{param} {what}.", param=param)
