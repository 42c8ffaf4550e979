"""Encodes a generation request for Gemini's streamGenerateContent."""

from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from tollgate.core.json_value import JsonValue
from tollgate.core.request import (
    GenerationRequest,
    JsonOutput,
    Sampling,
    SchemaOutput,
    Tool,
    ToolChoice,
)
from tollgate.core.service_tiers import DEFAULT_TIER
from tollgate.providers.codecs.gemini.thinking import thinking_config
from tollgate.providers.codecs.gemini.turns import conversation
from tollgate.providers.codecs.gemini.wire import model_path
from tollgate.providers.ports.base import Target, WireRequest
from tollgate.providers.ports.parameters import REFUSED_BY_DEFAULT, unsupported
from tollgate.providers.ports.wire_format import WireFormat
from tollgate.providers.shared.emulation import replace_guided, use_output_tool
from tollgate.providers.shared.readable import keep_readable

_INT32_MAX: Final = 2**31 - 1
_NO_SAMPLING: Final = Sampling()
_OTHERS_LACK: Final = frozenset(REFUSED_BY_DEFAULT) - {"service_tier"}
# ai.google.dev/gemini-api/docs/flex-inference, 2026-11-27.
_TIERS: Final = {DEFAULT_TIER: "standard"}
_NAMES: Final = frozenset(Sampling.__struct_fields__)


def encode(request: GenerationRequest, target: Target, format_: WireFormat) -> WireRequest:
    """Return the request for `POST …/models/{model}:streamGenerateContent`.

    Raises RequestError for a history that Gemini can never accept.
    """
    dialect = target.dialect
    request, unreadable = keep_readable(request, format_.readership_of(target))
    request, wrapping = replace_guided(request)
    if _needs_output_tool(request, target):
        request, wrapping = use_output_tool(request), replace(wrapping, tool=True)
    history = conversation(request.messages, signed_calls=dialect.gemini.signed_calls)
    thinking, thinks_otherwise = thinking_config(request.reasoning, dialect)
    body: dict[str, JsonValue] = {"contents": history.turns}
    if history.system:
        body["systemInstruction"] = {"parts": history.system}
    # The default list names parameters that OpenAI's API lacks. It does not apply to Gemini: the
    # rows of Gemini's providers name the parameters that a model refuses.
    refused = frozenset(dialect.refuses).difference(_OTHERS_LACK)
    if target.project is not None:
        # Vertex AI has other tiers, in headers.
        refused |= {"service_tier"}
    config = _sampling(request, target, refused) | _output_format(request)
    if "image" in request.output:
        # Image models return text and images by default, and no image model returns text only.
        config["responseModalities"] = [name.upper() for name in sorted(request.output)]
    if thinking:
        config["thinkingConfig"] = thinking
    if config:
        body["generationConfig"] = config
    if request.service_tier is not None and "service_tier" not in refused:
        body["serviceTier"] = _TIERS.get(request.service_tier, request.service_tier)
    body |= _tools(request)
    return WireRequest(
        # Without `alt=sse` Gemini streams one JSON array.
        path=f"{model_path(target)}:streamGenerateContent?alt=sse",
        body=body,
        adapted=(
            *(("seed",) if _is_beyond_int32(request.sampling.seed) else ()),
            *unsupported(request, format_.parameters - refused),
            *(("reasoning",) if thinks_otherwise else ()),
        ),
        unreadable=unreadable,
        wrapping=wrapping,
    )


def _sampling(
    request: GenerationRequest, target: Target, refused: Collection[str]
) -> dict[str, JsonValue]:
    unset = {name: getattr(_NO_SAMPLING, name) for name in refused if name in _NAMES}
    sampling = replace(request.sampling, **unset)
    fields: dict[str, JsonValue] = {
        "maxOutputTokens": target.limited(request.output_tokens_max),
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        # 0 means no limit, which is Gemini's default.
        "topK": sampling.top_k or None,
        "presencePenalty": sampling.presence_penalty,
        "frequencyPenalty": sampling.frequency_penalty,
        "seed": None if _is_beyond_int32(sampling.seed) else sampling.seed,
        "stopSequences": [sequence for sequence in sampling.stop if sequence] or None,
        "responseLogprobs": sampling.logprobs or None,
        "logprobs": sampling.top_logprobs if sampling.logprobs else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _is_beyond_int32(seed: int | None) -> bool:
    return seed is not None and not -_INT32_MAX - 1 <= seed <= _INT32_MAX


def _output_format(request: GenerationRequest) -> dict[str, JsonValue]:
    match request.output_format:
        case SchemaOutput(schema=schema):
            return {
                "responseMimeType": "application/json",
                "responseJsonSchema": _schema(dict(schema)),
            }
        case JsonOutput():
            return {"responseMimeType": "application/json"}
        case None:
            return {}


def _needs_output_tool(request: GenerationRequest, target: Target) -> bool:
    """Return whether a tool must emulate the format: Gemini 2 refuses JSON with tools."""
    has_both = request.output_format is not None and bool(_offered(request))
    return has_both and not target.dialect.gemini.schema_beside_tools


def _offered(request: GenerationRequest) -> tuple[Tool, ...]:
    choice = request.tool_choice
    # Gemini refuses a JSON format together with tools, even if the choice forbids calls.
    if choice is not None and choice.mode == "none" and request.output_format is not None:
        return ()
    return request.tools


def _tools(request: GenerationRequest) -> dict[str, JsonValue]:
    if request.server_tools:
        # Gemini refuses functions together with Google's own search:
        # https://ai.google.dev/gemini-api/docs/google-search (2026-11-22).
        return {"tools": [{"googleSearch": {}}]}
    offered = _offered(request)
    if not offered:
        return {}
    declared: dict[str, JsonValue] = {
        "tools": [{"functionDeclarations": [_declared(tool) for tool in offered]}]
    }
    if request.tool_choice is not None:
        declared["toolConfig"] = {"functionCallingConfig": _calling(request.tool_choice)}
    return declared


def _declared(tool: Tool) -> JsonValue:
    declaration: dict[str, JsonValue] = {"name": tool.name}
    if tool.description:
        declaration["description"] = tool.description
    if tool.parameters:
        declaration["parametersJsonSchema"] = _schema(dict(tool.parameters))
    return declaration


def _schema(schema: dict[str, JsonValue]) -> JsonValue:
    """Return a schema without `$schema`, which Gemini does not use."""
    return {key: value for key, value in schema.items() if key != "$schema"}


def _calling(choice: ToolChoice) -> JsonValue:
    match choice.mode:
        case "auto":
            return {"mode": "AUTO"}
        case "none":
            return {"mode": "NONE"}
        case "required":
            return {"mode": "ANY"}
        case "named":
            return {"mode": "ANY", "allowedFunctionNames": [choice.name]}
