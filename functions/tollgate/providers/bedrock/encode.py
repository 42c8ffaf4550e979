"""A generation request for Bedrock's ConverseStream."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from pydantic import JsonValue

from tollgate.core.request import GenerationRequest, Tool, ToolChoice
from tollgate.providers.base import Target, WireRequest
from tollgate.providers.bedrock.content import Blocks
from tollgate.providers.bedrock.turns import conversation

# Converse allows 0 to 1 where OpenAI allows 0 to 2.
_TEMPERATURE_MAX: Final = 1.0


def encode(request: GenerationRequest, target: Target) -> WireRequest:
    """The request for `POST /model/{id}/converse-stream`; RequestError for a broken history."""
    blocks = Blocks(caches="prompt_cache" in target.supports)
    said = conversation(request.messages, blocks)
    body: dict[str, JsonValue] = {"messages": said.turns}
    if said.system:
        body["system"] = said.system
    inference = _inference(request, target)
    if inference:
        body["inferenceConfig"] = inference
    tools = _tool_config(request, said.called)
    if tools:
        body["toolConfig"] = tools
    return WireRequest(
        path=f"/model/{quote(target.upstream_model, safe='')}/converse-stream",
        body=body,
        adapted=_adapted(request, tools),
    )


def _inference(request: GenerationRequest, target: Target) -> dict[str, JsonValue]:
    sampling = request.sampling
    config: dict[str, JsonValue] = {}
    if request.output_tokens_max is not None:
        limits = (request.output_tokens_max, target.output_tokens_max)
        config["maxTokens"] = min(limit for limit in limits if limit is not None)
    if sampling.temperature is not None:
        config["temperature"] = min(sampling.temperature, _TEMPERATURE_MAX)
    if sampling.top_p is not None:
        config["topP"] = sampling.top_p
    stop: list[JsonValue] = [sequence for sequence in sampling.stop if sequence]
    if stop:
        config["stopSequences"] = stop
    return config


def _tool_config(request: GenerationRequest, called: Sequence[str]) -> dict[str, JsonValue]:
    """The tools offered; a history of calls needs some, so else those that were called."""
    choice = request.tool_choice
    offered = () if choice is not None and choice.mode == "none" else request.tools
    # Converse knows no `none`: not to be called is not to be there, unless the history needs it.
    tools = offered or tuple(_known(name, request.tools) for name in called)
    if not tools:
        return {}
    config: dict[str, JsonValue] = {"tools": [_tool(tool) for tool in tools]}
    if offered and choice is not None:
        config["toolChoice"] = _tool_choice(choice)
    return config


def _known(name: str, tools: Sequence[Tool]) -> Tool:
    return next((tool for tool in tools if tool.name == name), Tool(name=name))


def _tool(tool: Tool) -> JsonValue:
    spec: dict[str, JsonValue] = {
        "name": tool.name,
        "inputSchema": {"json": dict(tool.parameters or {"type": "object", "properties": {}})},
    }
    if tool.description:
        spec["description"] = tool.description
    return {"toolSpec": spec}


def _tool_choice(choice: ToolChoice) -> JsonValue:
    if choice.mode == "named":
        return {"tool": {"name": choice.name}}
    return {"any": {}} if choice.mode == "required" else {"auto": {}}


def _adapted(request: GenerationRequest, tools: dict[str, JsonValue]) -> tuple[str, ...]:
    """The caller's parameters that Converse has no field for, or no room."""
    sampling = request.sampling
    choice = request.tool_choice
    changed = {
        "temperature": (sampling.temperature or 0.0) > _TEMPERATURE_MAX,
        "top_k": sampling.top_k is not None,
        "min_p": sampling.min_p is not None,
        "presence_penalty": sampling.presence_penalty is not None,
        "frequency_penalty": sampling.frequency_penalty is not None,
        "repetition_penalty": sampling.repetition_penalty is not None,
        "seed": sampling.seed is not None,
        "logit_bias": bool(sampling.logit_bias),
        "tool_choice": bool(tools) and choice is not None and choice.mode == "none",
        "parallel_tool_calls": request.parallel_tool_calls is False and bool(request.tools),
        "tools.strict": any(tool.strict for tool in request.tools),
        "user": request.user is not None,
    }
    return tuple(name for name, is_changed in changed.items() if is_changed)
