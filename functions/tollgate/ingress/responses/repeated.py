"""The request fields that a response repeats, in the form required by OpenAI's schema."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, assert_never

from msgspec import Struct
from msgspec.structs import asdict

from tollgate.core.json_value import JsonValue
from tollgate.ingress.responses.wire import response_request as wire
from tollgate.ingress.responses.wire import tool_models
from tollgate.ingress.responses.wire.server_tool_models import ServerToolType

_Json = dict[str, Any]


class StatedNumbers(Struct, frozen=True, kw_only=True):
    """The numeric parameters that every response contains, with OpenAI's defaults."""

    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    temperature: float = 1.0
    top_logprobs: int = 0
    top_p: float = 1.0


# The values that a response shows for parameters that were not sent to the provider.
_DEFAULTS: Final[Mapping[str, JsonValue]] = asdict(StatedNumbers())


def repeated_fields(params: wire.ResponsesRequest, declared: Iterable[tool_models.Tool]) -> _Json:
    """Return the fields that the response repeats; `tools` has only the tools that the caller
    runs.
    """
    text = params.text
    reasoning = params.reasoning
    summary = reasoning.summary if reasoning else None
    format_ = text.format if text else None
    fields: _Json = {
        **_DEFAULTS,
        "instructions": params.instructions,
        "max_output_tokens": params.max_output_tokens,
        "max_tool_calls": params.max_tool_calls,
        "metadata": params.metadata or {},
        "parallel_tool_calls": params.parallel_tool_calls is not False,
        "previous_response_id": params.previous_response_id,
        "prompt_cache_key": params.prompt_cache_key,
        "reasoning": {
            "effort": reasoning.effort if reasoning else None,
            "summary": None if summary == "none" else summary,
        },
        "safety_identifier": params.safety_identifier,
        "text": {
            "format": (
                {"type": "text"}
                if format_ is None
                else format_.model_dump(by_alias=True, exclude_none=True)
            )
        },
        "tool_choice": _choice(params),
        "tools": list(_tools(declared)),
        "truncation": params.truncation or "disabled",
        "user": params.user,
    }
    if text is not None and text.verbosity is not None:
        fields["text"]["verbosity"] = text.verbosity
    for name in _DEFAULTS:
        value = getattr(params, name)
        if value is not None:
            fields[name] = value
    return fields


def used_fields(
    repeated: Mapping[str, JsonValue], adapted: Collection[str]
) -> Mapping[str, JsonValue]:
    """Return the repeated fields, with defaults for parameters that were not sent to the provider.

    A provider's maximum may lower the temperature to 1, which is also the default.
    """
    return {**repeated, **{name: _DEFAULTS[name] for name in adapted if name in _DEFAULTS}}


def _choice(params: wire.ResponsesRequest) -> Any:
    choice = params.tool_choice
    if choice is None or isinstance(choice, str):
        return choice or "auto"
    return choice.model_dump(exclude_none=True)


def _tools(declared: Iterable[tool_models.Tool]) -> Iterator[_Json]:
    for tool in declared:
        match tool:
            case tool_models.FunctionTool() | tool_models.CustomTextTool():
                yield _tool(tool)
            case tool_models.NamespaceTool():
                yield {
                    "type": "namespace",
                    "name": tool.name,
                    "description": tool.description or "",
                    "tools": [_tool(nested) for nested in tool.tools],
                }
            case ServerToolType() | tool_models.HostedTool():
                pass
            case _:
                assert_never(tool)


def _tool(tool: tool_models.FunctionTool | tool_models.CustomTextTool) -> _Json:
    if isinstance(tool, tool_models.FunctionTool):
        return {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "strict": bool(tool.strict),
        }
    rendered: _Json = {"type": "custom", "name": tool.name}
    if tool.description is not None:
        rendered["description"] = tool.description
    rendered["format"] = (
        {"type": "text"} if tool.format is None else tool.format.model_dump(exclude_none=True)
    )
    return rendered
