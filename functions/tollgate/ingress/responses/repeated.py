"""The request fields that a response repeats, in the form of OpenAI's schema."""

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

from tollgate.ingress.responses.wire import response_request as wire
from tollgate.ingress.responses.wire import tool_models
from tollgate.ingress.responses.wire.server_tool_models import ServerToolType

_Json = dict[str, Any]


def repeated_fields(params: wire.ResponsesRequest, declared: Iterable[tool_models.Tool]) -> _Json:
    """Return the fields that the response repeats; `tools` has only the tools that the caller
    runs.
    """
    text = params.text
    reasoning = params.reasoning
    summary = reasoning.summary if reasoning else None
    format_ = text.format if text else None
    fields: _Json = {
        "instructions": params.instructions,
        "max_output_tokens": params.max_output_tokens,
        "metadata": params.metadata or {},
        "parallel_tool_calls": params.parallel_tool_calls is not False,
        "previous_response_id": params.previous_response_id,
        "reasoning": {
            "effort": reasoning.effort if reasoning else None,
            "summary": None if summary == "none" else summary,
        },
        "temperature": params.temperature,
        "text": {
            "format": (
                {"type": "text"}
                if format_ is None
                else format_.model_dump(by_alias=True, exclude_none=True)
            )
        },
        "tool_choice": _choice(params),
        "tools": list(_tools(declared)),
        "top_logprobs": params.top_logprobs or 0,
        "top_p": params.top_p,
        "truncation": params.truncation or "disabled",
    }
    if text is not None and text.verbosity is not None:
        fields["text"]["verbosity"] = text.verbosity
    for name in ("prompt_cache_key", "safety_identifier", "user"):
        value = getattr(params, name)
        if value is not None:
            fields[name] = value
    return fields


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
