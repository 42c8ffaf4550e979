"""Encodes generation requests for the Messages API of Anthropic, Vertex AI and Bedrock."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from msgspec import Struct, field

from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.json_value import JsonValue
from tollgate.core.request import GenerationRequest, NativeOptions, ReasoningOptions
from tollgate.core.unknown_fields import add_unknown
from tollgate.providers.codecs.anthropic.thinking import thinking
from tollgate.providers.codecs.anthropic.tools import Tooling, tooling
from tollgate.providers.codecs.anthropic.turns import Conversation, conversation
from tollgate.providers.ports.base import Target, WireRequest
from tollgate.providers.ports.dialect import ClaudeCarrier, Dialect
from tollgate.providers.ports.parameters import native_names, unsupported
from tollgate.providers.ports.wire_format import WireFormat
from tollgate.providers.shared.cache_marks import keep_last_marks
from tollgate.providers.shared.claude_options import BETAS_ELSEWHERE, taken_options
from tollgate.providers.shared.claude_thinking import ClaudeThinking
from tollgate.providers.shared.readable import keep_readable

# A later version is not used, because 2026-10-21 refuses temperature, top_p and top_k even at their
# defaults.
_VERSION: Final = "2023-06-01"
# The field is mandatory. A target without a limit gets the smallest limit of any Claude model.
_OUTPUT_TOKENS_MAX: Final = 4096
# Anthropic allows a temperature of 0 to 1, OpenAI of 0 to 2.
_TEMPERATURE_MAX: Final = 1.0
_DEFAULTS: Final = {"temperature": 1.0, "top_p": 1.0}
_CACHE_MARKS_MAX: Final = 4
_USER_CHARACTERS_MAX: Final = 256
# Options that the body contains under other names, or whose absence is reported by other code.
_SENT_OTHERWISE: Final = ("cache_control", "tool_result.is_error", "tools.strict")
# Parameters that are regarded as sent only if the body has their field.
_SENT_IN_BODY: Final = ("service_tier", "user")
# Both the caller's native options and the gateway set fields inside this one.
_OUTPUT: Final = "output_config."
_SERVICE_TIERS: Final = {"auto": "auto", "default": "standard_only"}


class _Carrier(Struct, frozen=True, kw_only=True):
    """A host of Anthropic's format, and how its requests differ.

    Vertex: https://platform.claude.com/docs/en/api/claude-on-vertex-ai; Bedrock:
    https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html
    (both seen 2026-11-21). Bedrock has `stream` in its path and refuses it in the body.
    """

    path: str
    """A template with fields for the target's project, location and model."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, JsonValue] = field(default_factory=dict)
    """Fields that every body has."""
    names_model: bool = False
    """True if the body names the model, False if the path does."""
    has_service_tiers: bool = False
    betas_in_body: bool = False
    """True if the body lists the beta features, False if a header does."""
    betas: tuple[str, ...] | None = None
    """Prefixes of the beta features that the host accepts; None for a host that accepts all."""


_CARRIERS: Final[Mapping[ClaudeCarrier, _Carrier]] = {
    "anthropic": _Carrier(
        path="/messages",
        headers={"anthropic-version": _VERSION},
        body={"stream": True},
        names_model=True,
        has_service_tiers=True,
    ),
    "vertex": _Carrier(
        path=(
            "/v1/projects/{project}/locations/{location}"
            "/publishers/anthropic/models/{model}:streamRawPredict"
        ),
        body={"anthropic_version": "vertex-2023-10-16", "stream": True},
        betas=BETAS_ELSEWHERE,
    ),
    "bedrock": _Carrier(
        path="/model/{model}/invoke-with-response-stream",
        body={"anthropic_version": "bedrock-2023-05-31"},
        betas_in_body=True,
        betas=BETAS_ELSEWHERE,
    ),
}


def encode(request: GenerationRequest, target: Target, format_: WireFormat) -> WireRequest:
    """Return a streamed request; raise RequestError for content that the model cannot accept.

    Raises UpstreamError if the target has a guardrail, because only Converse reports interventions.
    """
    if target.guardrail is not None:
        raise UpstreamError(
            ErrorCode.PROVIDER_UNAVAILABLE,
            f"The provider {target.provider} applies guardrails only with the codec bedrock.",
        )
    dialect, carrier = target.dialect, _CARRIERS[target.dialect.claude_carrier]
    request, unreadable = keep_readable(request, format_.readership_of(target))
    request, has_too_many_marks = keep_last_marks(request, _CACHE_MARKS_MAX)
    betas = carrier.betas if dialect.claude.betas is None else dialect.claude.betas
    native = taken_options(request.native, betas)
    history = conversation(request.messages, dialect, has_unknown=bool(native.unknown_names))
    tools = tooling(request, target, history.called, native)
    limit = target.limited(request.output_tokens_max)
    output_tokens_max = limit or target.output_tokens_max or _OUTPUT_TOKENS_MAX
    thoughts = thinking(
        request.reasoning or ReasoningOptions(),
        dialect,
        output_tokens_max=output_tokens_max,
        forbidden=history.is_prefilled
        or (tools.forces_a_call and not dialect.claude.forced_calls_while_thinking),
        without_budget=history.has_lost_its_thoughts,
    )
    sampling, dropped = _sampling(request, dialect, thoughts)
    body: dict[str, JsonValue] = {
        **({"model": target.upstream_model} if carrier.names_model else {}),
        **carrier.body,
        "max_tokens": output_tokens_max,
        **_content(history, tools, thoughts, native),
        **sampling,
        **_metadata(request, dialect, carrier),
    }
    body = add_unknown(body, native.unknown)
    headers = carrier.headers
    if native.betas and carrier.betas_in_body:
        body["anthropic_beta"] = [*native.betas]
    elif native.betas:
        headers = {**headers, "anthropic-beta": ",".join(native.betas)}
    user = ("user",) if "metadata" in body else ()
    sent = format_.parameters.difference(_SENT_IN_BODY).union(
        _SENT_OTHERWISE, native_names(native), user, body
    )
    return WireRequest(
        path=_path(carrier, target),
        body=body,
        headers=headers,
        adapted=(
            *dropped,
            *tools.adapted,
            *(("reasoning",) if thoughts.is_adapted else ()),
            *(("cache_control",) if has_too_many_marks else ()),
            *unsupported(request, sent),
        ),
        unreadable=unreadable,
        wrapping=tools.wrapping,
    )


def _path(carrier: _Carrier, target: Target) -> str:
    return carrier.path.format(
        project=target.project,
        location=target.location,
        model=quote(target.upstream_model, safe="@"),
    )


def _content(
    history: Conversation, tools: Tooling, thoughts: ClaudeThinking, native: NativeOptions
) -> dict[str, JsonValue]:
    content: dict[str, JsonValue] = {"messages": [turn.message for turn in history.turns]}
    if history.system:
        content["system"] = [*history.system]
    if tools.tools:
        content["tools"] = [*tools.tools]
        if tools.choice:
            content["tool_choice"] = tools.choice
    if thoughts.config:
        content["thinking"] = thoughts.config
    output: dict[str, JsonValue] = {}
    for name, value in native.fields.items():
        if name.startswith(_OUTPUT):
            output[name.removeprefix(_OUTPUT)] = value
        else:
            content[name] = value
    if thoughts.effort is not None:
        output["effort"] = thoughts.effort
    if tools.output_format:
        output["format"] = tools.output_format
    if output:
        content["output_config"] = output
    return content


def _sampling(
    request: GenerationRequest, dialect: Dialect, thoughts: ClaudeThinking
) -> tuple[dict[str, JsonValue], list[str]]:
    """Return the sampling fields, and the names of the parameters that are changed or left out.

    A thinking model accepts no sampling parameter, except the default temperature of 1.
    """
    sampling = request.sampling
    wanted: dict[str, float | int | None] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        # 0 means no limit, which is Anthropic's default.
        **({"top_k": sampling.top_k} if sampling.top_k else {}),
    }
    refused = set(wanted) if thoughts.is_on else set(dialect.refuses)
    if sampling.temperature is not None and not dialect.claude.temperature_and_top_p:
        refused.add("top_p")
    fields: dict[str, JsonValue] = {
        name: value for name, value in wanted.items() if value is not None and name not in refused
    }
    if sampling.temperature is not None and "temperature" in fields:
        fields["temperature"] = min(sampling.temperature, _TEMPERATURE_MAX)
    # Leaving out a parameter whose value is the default does not change the answer.
    dropped = [
        name
        for name, value in wanted.items()
        if value is not None and fields.get(name, _DEFAULTS.get(name)) != value
    ]
    stop = [sequence for sequence in sampling.stop if sequence.strip()]
    if stop:
        fields["stop_sequences"] = [*stop]
    if len(stop) < len(sampling.stop):
        # Anthropic refuses a stop sequence of white space alone.
        dropped.append("stop")
    return fields, dropped


def _metadata(
    request: GenerationRequest, dialect: Dialect, carrier: _Carrier
) -> dict[str, JsonValue]:
    metadata: dict[str, JsonValue] = {}
    user = request.user if "user" not in dialect.refuses else None
    if user and len(user) <= _USER_CHARACTERS_MAX:
        metadata["metadata"] = {"user_id": user}
    tier = _SERVICE_TIERS.get(request.service_tier or "")
    if tier and carrier.has_service_tiers and "service_tier" not in dialect.refuses:
        metadata["service_tier"] = tier
    return metadata
