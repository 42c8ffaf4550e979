"""Completes a request with the preset that it names."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.content import Text
from tollgate.core.errors import ErrorCode, RequestError, invalid_request
from tollgate.core.request import (
    PRESET_PREFIX,
    GenerationRequest,
    ReasoningOptions,
    Sampling,
    SystemMessage,
)
from tollgate.core.server_tools import ServerTool
from tollgate.ingress.shared.fields import parse_sampling
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.exclusions import shorten
from tollgate.routing.planning.unknown_names import describe_unknown
from tollgate.routing.preset_sections import VARIABLE, PresetSection, VariableSection

_FIELD: Final = "preset_variables"
_INTEGER_MAX: Final = 2**53
_SHOWN_MAX: Final = 8


class CompletedRequest(Struct, frozen=True, kw_only=True):
    """Request with the fields of its preset."""

    request: GenerationRequest
    replaced: tuple[str, ...] = ()
    """Names of the caller's fields that the preset replaced, because it fixes these fields."""


def complete_request(catalog: Catalog, request: GenerationRequest) -> CompletedRequest:
    """Return a request with the fields of its preset.

    Raises RequestError for an unknown preset, and for variables that do not fit it.
    """
    if request.preset is None:
        return CompletedRequest(request=request)
    name = f"{PRESET_PREFIX}{request.preset}"
    preset = catalog.presets.rows.get(request.preset)
    if preset is None:
        unknown = describe_unknown(catalog, name)
        raise RequestError(ErrorCode.MODEL_NOT_FOUND, unknown, param="model")
    texts = _texts_of(preset, request.preset_variables)
    replaced: list[str] = []

    def is_open(field: str, *, stated: bool) -> bool:
        """Return True if the preset's value of a field applies; record the field if it replaces the
        caller's.
        """
        if stated and field in preset.fixed:
            replaced.append(field)
        return not stated or field in preset.fixed

    if "model" in preset.fixed and (request.model != name or request.preferences.models):
        replaced += ["model"] if request.model != name else []
        replaced += ["models"] if request.preferences.models else []
        preferences = replace(request.preferences, models=())
        request = replace(request, model=name, preferences=preferences)
    if preset.system is not None and is_open("system", stated=_has_system(request)):
        # A single pass, so that a value is never searched for further variables.
        system = VARIABLE.sub(lambda found: texts[found[1]], preset.system)
        request = _with_system(request, system)
    if preset.max_tokens is not None and is_open(
        "max_tokens", stated=request.output_tokens_max is not None
    ):
        request = replace(request, output_tokens_max=preset.max_tokens)
    if preset.reasoning is not None and is_open("reasoning", stated=request.reasoning is not None):
        request = replace(request, reasoning=ReasoningOptions(effort=preset.reasoning))
    if preset.parameters is not None:
        own = parse_sampling(preset.parameters, logprobs=None, top_logprobs=None)
        chosen = {
            field: getattr(own, field)
            for field in preset.parameters.model_dump(exclude_none=True)
            if is_open(field, stated=_states(request.sampling, field))
        }
        request = replace(request, sampling=replace(request.sampling, **chosen))
    return CompletedRequest(request=_with_tools(request, preset), replaced=tuple(replaced))


def _texts_of(preset: PresetSection, stated: Mapping[str, str | int]) -> dict[str, str]:
    """Return the text of each variable; raise RequestError with the variable at fault."""
    for name in stated:
        if name not in preset.variables:
            known = ", ".join(sorted(preset.variables)[:_SHOWN_MAX]) or "none"
            message = f"The preset has no variable {shorten(name)}; its variables: {known}."
            raise invalid_request(message, f"{_FIELD}.{shorten(name)}")
    texts: dict[str, str] = {}
    for name, variable in preset.variables.items():
        value = stated.get(name)
        fault = "is required" if value is None else _fault_of(variable, value)
        if fault is not None:
            raise invalid_request(f"{_FIELD}.{name} {fault}.", f"{_FIELD}.{name}")
        texts[name] = str(value)
    return texts


def _fault_of(variable: VariableSection, value: str | int) -> str | None:
    if variable.type == "integer":
        is_integer = isinstance(value, int) and abs(value) <= _INTEGER_MAX
        return None if is_integer else "must be a whole number of at most 53 bits"
    if not isinstance(value, str):
        return "must be a string"
    if variable.length_max is not None and len(value) > variable.length_max:
        return f"must have at most {variable.length_max} characters, not {len(value)}"
    if variable.values and value not in variable.values:
        *first, last = variable.values[:_SHOWN_MAX]
        return f"must be {', '.join(first)} or {last}" if first else f"must be {last}"
    return None


def _has_system(request: GenerationRequest) -> bool:
    return any(isinstance(message, SystemMessage) for message in request.messages)


def _with_system(request: GenerationRequest, system: str) -> GenerationRequest:
    """Return the request with a system prompt before each conversation, in place of others."""
    prompt = SystemMessage(content=(Text(text=system),))
    conversations = tuple(
        (prompt, *(each for each in messages if not isinstance(each, SystemMessage)))
        for messages in request.conversations
    )
    # The preset's text counts towards the prompt's upper bound, and so towards the amount held.
    size_bytes = request.size_bytes + len(system.encode(errors="replace")) * len(conversations)
    first, *further = conversations
    return replace(request, messages=first, further=tuple(further), size_bytes=size_bytes)


def _states(sampling: Sampling, field: str) -> bool:
    return getattr(sampling, field) not in (None, (), {})


def _with_tools(request: GenerationRequest, preset: PresetSection) -> GenerationRequest:
    stated = {tool.id for tool in request.server_tools}
    added = tuple(
        ServerTool(id=tool, field="preset") for tool in preset.tools if tool not in stated
    )
    return replace(request, server_tools=(*request.server_tools, *added)) if added else request
