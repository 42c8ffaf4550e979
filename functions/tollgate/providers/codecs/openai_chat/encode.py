"""Encodes generation requests as chat completions, in the dialect of the server."""

from collections.abc import Mapping
from typing import Final, assert_never

from tollgate.core.json_value import JsonValue
from tollgate.core.request import (
    GenerationRequest,
    JsonOutput,
    OutputFormat,
    SchemaOutput,
    Tool,
    ToolChoice,
)
from tollgate.providers.codecs.openai_chat.messages import ChatMessages, add_mark
from tollgate.providers.codecs.openai_chat.reasoning import reasoning_fields
from tollgate.providers.codecs.openai_chat.thoughts import readership
from tollgate.providers.ports.base import Target, WireRequest
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.parameters import stated_parameters, unsupported
from tollgate.providers.shared.cache_marks import has_marked_calls
from tollgate.providers.shared.emulation import (
    NOT_WRAPPED,
    Wrapping,
    replace_guided,
    use_output_tool,
)
from tollgate.providers.shared.openai_writing import ANY_OBJECT, limit_fields, path_of
from tollgate.providers.shared.own_format import OwnFormat, own_format
from tollgate.providers.shared.readable import keep_readable
from tollgate.providers.shared.strict_schema import close_schema

_PATH: Final = "/chat/completions"


def encode(request: GenerationRequest, target: Target) -> WireRequest:
    """Return the request for `POST {base_url}/chat/completions`, always streamed.

    Raises RequestError for content that this server can never accept.
    """
    dialect = target.dialect
    request, unreadable = keep_readable(request, readership(target))
    wrapping = NOT_WRAPPED
    if not dialect.guided:
        request, wrapping = replace_guided(request)
    if request.output_format is not None and not _is_native(request.output_format, target):
        request = use_output_tool(request)
        wrapping = Wrapping(tool=True, choice=wrapping.choice)
    reasoning, changed = reasoning_fields(request.reasoning, target)
    parameters = stated_parameters(request)
    own = own_format(request.native, "openai_chat", target)
    body: dict[str, JsonValue] = {
        "model": target.upstream_model,
        "messages": ChatMessages(target, own).encode(request.messages),
        "stream": True,
        **limit_fields(request, target),
        **_tools(request, dialect, own),
        **_output_format(request.output_format),
        **_parameters(parameters, dialect),
        **reasoning,
        **request.guided,
    }
    if "image" in request.output:
        body["modalities"] = [*sorted(request.output)]
    body = own.add_to_body(body)
    sent = body.keys() | _sent_otherwise(request, dialect) | own.sent_names(body)
    return WireRequest(
        path=path_of(target, _PATH),
        body=body,
        adapted=(*unsupported(request, sent, parameters), *changed),
        unreadable=unreadable,
        wrapping=wrapping,
    )


def _is_native(output: OutputFormat, target: Target) -> bool:
    """Return whether the server enforces this format; a schema needs the model's support too."""
    match output:
        case JsonOutput():
            return target.dialect.output_format is not None
        case SchemaOutput():
            able = "structured_output" in target.supports or target.dialect.guided
            return able and target.dialect.output_format == "json_schema"
        case _:
            assert_never(output)


def _parameters(stated: Mapping[str, JsonValue], dialect: Dialect) -> dict[str, JsonValue]:
    """Return the parameters that the server accepts, under the server's own names."""
    accepted = {name: value for name, value in stated.items() if name not in dialect.refuses}
    if "seed" in accepted:
        accepted[dialect.seed_field] = accepted.pop("seed")
    return accepted


def _sent_otherwise(request: GenerationRequest, dialect: Dialect) -> set[str]:
    """Return the names of options that are sent in messages and tools, or under other names."""
    # Chat completions have no field for cache marks on calls.
    marks = dialect.cache_marks and not has_marked_calls(request)
    return {
        "image_url.detail",
        "tools.strict",
        *(("cache_control",) if marks else ()),
        *(("messages[].name",) if dialect.message_names else ()),
        *(() if "seed" in dialect.refuses else ("seed",)),
    }


def _tools(request: GenerationRequest, dialect: Dialect, own: OwnFormat) -> dict[str, JsonValue]:
    if not request.tools:
        return {}
    tools: list[JsonValue] = [own.add(_tool(tool, dialect), tool.native) for tool in request.tools]
    fields: dict[str, JsonValue] = {"tools": tools}
    if request.tool_choice is not None:
        fields["tool_choice"] = _tool_choice(request.tool_choice, dialect)
    return fields


def _tool(tool: Tool, dialect: Dialect) -> dict[str, JsonValue]:
    parameters = tool.parameters or ANY_OBJECT
    function: dict[str, JsonValue] = {
        "name": tool.name,
        "parameters": close_schema(parameters) if tool.strict else dict(parameters),
    }
    if tool.description is not None:
        function["description"] = tool.description
    if tool.strict is not None:
        function["strict"] = tool.strict
    encoded: dict[str, JsonValue] = {"type": "function", "function": function}
    return add_mark(encoded, tool.cache, dialect)


def _tool_choice(choice: ToolChoice, dialect: Dialect) -> JsonValue:
    match choice.mode:
        case "named":
            return {"type": "function", "function": {"name": choice.name}}
        case "required":
            return dialect.any_tool
        case "auto" | "none":
            return choice.mode
        case unknown:
            assert_never(unknown)


def _output_format(output: OutputFormat | None) -> dict[str, JsonValue]:
    match output:
        case None:
            return {}
        case JsonOutput():
            return {"response_format": {"type": "json_object"}}
        case SchemaOutput():
            schema: dict[str, JsonValue] = {
                "name": output.name,
                "schema": close_schema(output.schema) if output.strict else dict(output.schema),
            }
            if output.description is not None:
                schema["description"] = output.description
            if output.strict is not None:
                schema["strict"] = output.strict
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        case _:
            assert_never(output)
