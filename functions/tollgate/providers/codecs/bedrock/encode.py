"""Encodes a generation request for Bedrock's ConverseStream."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

import pydantic_core
from msgspec.structs import replace

from tollgate.core.json_value import JsonValue
from tollgate.core.request import (
    GenerationRequest,
    NativeOptions,
    OutputFormat,
    SchemaOutput,
    Tool,
    ToolChoice,
)
from tollgate.core.signers import CLAUDE
from tollgate.providers.codecs.bedrock.content import Blocks
from tollgate.providers.codecs.bedrock.thinking import Thinking, forces_a_call, thinking
from tollgate.providers.codecs.bedrock.turns import conversation
from tollgate.providers.ports.base import Target, WireRequest
from tollgate.providers.ports.parameters import native_names, unsupported
from tollgate.providers.ports.wire_format import WireFormat
from tollgate.providers.shared.cache_marks import keep_last_marks
from tollgate.providers.shared.claude_options import BETAS_ELSEWHERE, SAFEGUARDS, taken_options
from tollgate.providers.shared.emulation import Wrapping, replace_guided, use_output_tool
from tollgate.providers.shared.readable import keep_readable
from tollgate.providers.shared.strict_schema import close_schema

_AUTO: Final = ToolChoice(mode="auto")
# Converse allows a temperature of 0 to 1, OpenAI of 0 to 2.
_TEMPERATURE_MAX: Final = 1.0
_SERVICE_TIERS: Final = frozenset({"priority", "default", "flex", "reserved"})
# The maximum number of cache points for every model: https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html
_CACHE_POINTS_MAX: Final = 4


def encode(request: GenerationRequest, target: Target, format_: WireFormat) -> WireRequest:
    """Return the request for `POST /model/{id}/converse-stream`.

    Raises RequestError for an invalid history, and for content that no model on Converse accepts.
    """
    request, unreadable = keep_readable(request, format_.readership_of(target))
    request, wrapping = replace_guided(request)
    native = _native_output(request.output_format, target)
    if request.output_format is not None and not native:
        request = use_output_tool(request)
        wrapping = Wrapping(tool=True, choice=wrapping.choice)
    forced = "response_format" if wrapping.tool else "tool_choice"
    caches = "prompt_cache" in target.supports
    request, has_too_many_points = keep_last_marks(request, _CACHE_POINTS_MAX)
    blocks = Blocks(caches=caches)
    history = conversation(request.messages, blocks, marks_failures=target.dialect.failed_results)
    thoughts = thinking(request, target)
    options = _claude_options(request, target, format_)
    fields: dict[str, JsonValue] = {
        "system": history.system,
        "inferenceConfig": _inference(request, target, thoughts),
        "toolConfig": _tool_config(request, history.called, target, blocks),
        "outputConfig": native,
        "additionalModelRequestFields": _merged(thoughts.fields, options),
        "guardrailConfig": _guardrail(target),
        "serviceTier": _service_tier(request, target),
    }
    body = {"messages": history.turns} | {name: value for name, value in fields.items() if value}
    return WireRequest(
        path=f"/model/{quote(target.upstream_model, safe='')}/converse-stream",
        body=body,
        adapted=(
            *_adapted(request, target, body, thoughts=thoughts, options=options),
            *(("cache_control",) if caches and has_too_many_points else ()),
            *((forced,) if _cannot_be_forced(request, target) else ()),
        ),
        unreadable=unreadable,
        wrapping=wrapping,
    )


def _claude_options(
    request: GenerationRequest, target: Target, format_: WireFormat
) -> NativeOptions:
    """Return the options of Anthropic's format that Claude accepts here; none for other models.

    Converse has its own format for tools and answers, so native tools, tool fields, unknown fields
    and safeguards are left out.
    """
    betas = target.dialect.claude.betas
    is_claude = format_.signer_of(target) == CLAUDE
    native = request.native if is_claude else None
    options = taken_options(native, BETAS_ELSEWHERE if betas is None else betas)
    features = tuple(beta for beta in options.betas if not beta.startswith(SAFEGUARDS))
    return replace(options, betas=features, tools=(), tool_fields={}, unknown={}, unknown_names=())


def _merged(thoughts: Mapping[str, JsonValue], options: NativeOptions) -> dict[str, JsonValue]:
    """Return the model family's own fields: the fields for thinking and the caller's options."""
    fields = {**thoughts}
    for name, value in options.fields.items():
        group, _, inner = name.partition(".")
        if inner:
            outer = fields.get(group)
            fields[group] = {**(outer if isinstance(outer, dict) else {}), inner: value}
        else:
            fields[name] = value
    if options.betas:
        fields["anthropic_beta"] = [*options.betas]
    return fields


def _native_output(output: OutputFormat | None, target: Target) -> dict[str, JsonValue]:
    """Return `outputConfig` for a schema that the model enforces, empty for any other format.

    Models enforce closed schemas only, and closing a schema that is not strict changes its meaning.
    """
    if not isinstance(output, SchemaOutput) or not target.enforces_schemas:
        return {}
    schema = close_schema(output.schema)
    if not output.strict and schema != output.schema:
        return {}
    described: dict[str, JsonValue] = (
        {"description": output.description} if output.description else {}
    )
    definition: JsonValue = {
        "name": output.name,
        "schema": pydantic_core.to_json(schema).decode(),
        **described,
    }
    return {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": definition}}}


def _inference(
    request: GenerationRequest, target: Target, thoughts: Thinking
) -> dict[str, JsonValue]:
    sampling = request.sampling
    config: dict[str, JsonValue] = {}
    limit = target.limited(request.output_tokens_max)
    limit = thoughts.output_tokens_max if limit is None else limit
    if limit is not None:
        config["maxTokens"] = limit
    if sampling.temperature is not None and _takes_temperature(target, thoughts):
        config["temperature"] = min(sampling.temperature, _TEMPERATURE_MAX)
    if sampling.top_p is not None and _takes_top_p(request, target, thoughts):
        config["topP"] = sampling.top_p
    stop: list[JsonValue] = [sequence for sequence in sampling.stop if sequence]
    if stop and "stop" not in target.dialect.refuses:
        config["stopSequences"] = stop
    return config


def _takes_temperature(target: Target, thoughts: Thinking) -> bool:
    return "temperature" not in target.dialect.refuses and not thoughts.is_claude


def _takes_top_p(request: GenerationRequest, target: Target, thoughts: Thinking) -> bool:
    """Return whether `top_p` is sent: Claude 4.5 and later refuse a request that has both `top_p`
    and a temperature.
    """
    is_claude = target.dialect.reasoning in ("claude_budget", "claude_adaptive")
    crowded = is_claude and request.sampling.temperature is not None
    return "top_p" not in target.dialect.refuses and not crowded and not thoughts.is_claude


def _tool_config(
    request: GenerationRequest, called: Sequence[str], target: Target, blocks: Blocks
) -> dict[str, JsonValue]:
    """Return the tools that the caller offers; if it offers none, return the tools that the history
    called.
    """
    choice = request.tool_choice
    offered = () if choice is not None and choice.mode == "none" else request.tools
    # Converse has no tool choice `none`, so a request with this choice declares only the tools that
    # the history called.
    declared = {tool.name: tool for tool in request.tools}
    tools = offered or tuple(declared.get(name, Tool(name=name)) for name in called)
    if not tools:
        return {}
    specs: list[JsonValue] = []
    for tool in tools:
        mark = tool.cache if target.dialect.cached_tools else None
        specs += [_tool(tool, target), *blocks.cache_point(mark)]
    config: dict[str, JsonValue] = {"tools": specs}
    if offered and choice is not None:
        config["toolChoice"] = _tool_choice(_AUTO if _cannot_be_forced(request, target) else choice)
    return config


def _cannot_be_forced(request: GenerationRequest, target: Target) -> bool:
    """Return whether the caller forces a tool call, which Claude models that always think
    refuse.
    """
    claude = target.dialect.claude
    always_thinks = claude.thinking_off == "never" and not claude.forced_calls_while_thinking
    is_adaptive = target.dialect.reasoning == "claude_adaptive"
    return is_adaptive and always_thinks and forces_a_call(request)


def _tool(tool: Tool, target: Target) -> JsonValue:
    parameters = tool.parameters or {"type": "object", "properties": {}}
    strict = tool.strict and "structured_output" in target.supports
    spec: dict[str, JsonValue] = {
        "name": tool.name,
        "inputSchema": {"json": close_schema(parameters) if strict else dict(parameters)},
    }
    if tool.description:
        spec["description"] = tool.description
    if strict:
        spec["strict"] = True
    return {"toolSpec": spec}


def _tool_choice(choice: ToolChoice) -> JsonValue:
    if choice.mode == "named":
        return {"tool": {"name": choice.name}}
    return {"any": {}} if choice.mode == "required" else {"auto": {}}


def _guardrail(target: Target) -> dict[str, JsonValue]:
    """Return the operator's guardrail; with `sync` Bedrock checks text before sending it."""
    if target.guardrail is None:
        return {}
    return {
        "guardrailIdentifier": target.guardrail.id,
        "guardrailVersion": target.guardrail.version,
        "streamProcessingMode": "sync",
    }


def _service_tier(request: GenerationRequest, target: Target) -> dict[str, JsonValue]:
    tier = request.service_tier
    if tier not in _SERVICE_TIERS or "service_tier" in target.dialect.refuses:
        return {}
    return {"type": tier}


def _adapted(
    request: GenerationRequest,
    target: Target,
    body: Mapping[str, JsonValue],
    *,
    thoughts: Thinking,
    options: NativeOptions,
) -> tuple[str, ...]:
    """Return the names of the caller's options that the encoded request changes or leaves out."""
    sampling, choice = request.sampling, request.tool_choice
    sent = {
        "temperature": (sampling.temperature or 0.0) <= _TEMPERATURE_MAX
        and _takes_temperature(target, thoughts),
        "top_p": _takes_top_p(request, target, thoughts),
        "stop": "stop" not in target.dialect.refuses,
        "tools.strict": "structured_output" in target.supports,
        "cache_control": "prompt_cache" in target.supports
        and (target.dialect.cached_tools or all(tool.cache is None for tool in request.tools)),
        "service_tier": "serviceTier" in body,
        "tool_result.is_error": target.dialect.failed_results,
    }
    changed = {
        "tool_choice": "toolConfig" in body and choice is not None and choice.mode == "none",
        "reasoning": thoughts.adapted,
    }
    return (
        *unsupported(
            request, {*native_names(options), *(name for name, is_sent in sent.items() if is_sent)}
        ),
        *(name for name, is_changed in changed.items() if is_changed),
    )
