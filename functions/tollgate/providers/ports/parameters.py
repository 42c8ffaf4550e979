"""The optional parameters of requests, which servers may refuse and codecs may leave out.

The sampling parameters are the fields of `core.request.Sampling`. A new parameter is a field there
and in the client formats; codecs change only if a provider has another name for the parameter.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import asdict

from tollgate.core.content import Image
from tollgate.core.json_value import JsonValue
from tollgate.core.request import (
    GenerationRequest,
    NativeOptions,
    Sampling,
    ToolMessage,
    UserMessage,
)
from tollgate.providers.shared.cache_marks import marks
from tollgate.providers.shared.emulation import OUTPUT_TOOL

# Parameters under the names that callers use.
_SAMPLING: Final = Sampling.__struct_fields__
_OF_THE_REQUEST: Final = ("parallel_tool_calls", "prompt_cache_key", "service_tier", "user")

PARAMETERS: Final = tuple(sorted((*_SAMPLING, *_OF_THE_REQUEST)))
# Parameters that a provider row refuses by default. OpenAI's API does not have the sampling
# parameters among them, and the catalog may have no price for a service tier.
REFUSED_BY_DEFAULT: Final = (
    "min_p",
    "prompt_cache_key",
    "repetition_penalty",
    "service_tier",
    "top_k",
)
if TYPE_CHECKING:
    Parameter = str
else:
    # Pydantic and the published schema of routing.yaml need every name in the literal.
    Parameter = Literal[PARAMETERS]

_NO_SAMPLING: Final = Sampling()
# Values that are the default at every provider, so leaving them out changes nothing.
_WITHOUT_EFFECT: Final[Mapping[str, JsonValue]] = {
    "logprobs": False,
    "parallel_tool_calls": True,
    "service_tier": "auto",
}


def stated_parameters(request: GenerationRequest) -> dict[str, JsonValue]:
    """Return the value of every parameter that the caller set, by name."""
    values: dict[str, JsonValue] = {}
    if request.sampling != _NO_SAMPLING:
        for name, value in asdict(request.sampling).items():
            # 0 and False count as set, while None, empty lists and empty mappings do not.
            if value or value == 0:
                values[name] = list(value) if isinstance(value, tuple) else value
    for name in _OF_THE_REQUEST:
        value = getattr(request, name)
        if value is not None:
            values[name] = value
    if not request.tools:
        # OpenAI refuses `parallel_tool_calls` without tools.
        values.pop("parallel_tool_calls", None)
    return values


def unsupported(
    request: GenerationRequest, sent: Collection[str], stated: Mapping[str, JsonValue] | None = None
) -> tuple[str, ...]:
    """Return the names of parameters that are set but not sent, for `x-tollgate-adapted`.

    Options within messages and tools count too. `sent` has the names of all parameters that are
    sent. `stated` has the request's `stated_parameters`, if they are computed already.
    """
    parameters = _effective(stated_parameters(request) if stated is None else stated)
    names = [*parameters, *_content_options(request)]
    return tuple(name for name in names if name not in sent)


def effective_parameters(request: GenerationRequest) -> list[str]:
    """Return the names of parameters that the caller set to a value other than the default."""
    return _effective(stated_parameters(request))


def _effective(stated: Mapping[str, JsonValue]) -> list[str]:
    return [
        name
        for name, value in stated.items()
        if name not in _WITHOUT_EFFECT or value != _WITHOUT_EFFECT[name]
    ]


def _content_options(request: GenerationRequest) -> Iterator[str]:
    if any(tool.strict and tool.name != OUTPUT_TOOL for tool in request.tools):
        yield "tools.strict"
    if any(mark is not None for mark in marks(request)):
        yield "cache_control"
    yield from native_names(request.native)
    if any(isinstance(message, ToolMessage) and message.failed for message in request.messages):
        yield "tool_result.is_error"
    if _wants_detail(request):
        yield "image_url.detail"
    if any(
        not isinstance(message, ToolMessage) and message.name is not None
        for message in request.messages
    ):
        yield "messages[].name"


def native_names(native: NativeOptions | None) -> Iterator[str]:
    """Yield the names of native options, as written in `x-tollgate-adapted`."""
    if native is None:
        return
    yield from native.fields
    yield from (f"anthropic-beta:{beta}" for beta in native.betas)
    yield from (f"tools[]:{tool.get('type')}" for tool in native.tools)
    fields = chain.from_iterable(native.tool_fields.values())
    yield from dict.fromkeys((*(f"tools[].{name}" for name in fields), *native.unknown_names))


def _wants_detail(request: GenerationRequest) -> bool:
    """Return whether the caller requests an image resolution other than the default."""
    return any(
        isinstance(part, Image) and part.detail in ("low", "high")
        for message in request.messages
        if isinstance(message, UserMessage)
        for part in message.content
    )
