"""What a caller asks for beyond the conversation, by the names that `x-tollgate-adapted` tells.

A codec says which of these go out, those under their own names by the body; the rest is named.
"""

from collections.abc import Collection, Iterator

from tollgate.core.content import Image
from tollgate.core.request import GenerationRequest, ToolMessage, UserMessage
from tollgate.providers.shared.cache_marks import marks
from tollgate.providers.shared.emulation import OUTPUT_TOOL


def unsupported(request: GenerationRequest, met: Collection[str]) -> tuple[str, ...]:
    """The names of what is asked for and not in `met`."""
    return tuple(name for name in _asked(request) if name not in met)


def _asked(request: GenerationRequest) -> Iterator[str]:
    sampling = request.sampling
    asked = {
        "temperature": sampling.temperature is not None,
        "top_p": sampling.top_p is not None,
        "top_k": sampling.top_k is not None,
        "min_p": sampling.min_p is not None,
        "presence_penalty": sampling.presence_penalty is not None,
        "frequency_penalty": sampling.frequency_penalty is not None,
        "repetition_penalty": sampling.repetition_penalty is not None,
        "seed": sampling.seed is not None,
        "stop": bool(sampling.stop),
        "logit_bias": bool(sampling.logit_bias),
        "logprobs": bool(sampling.logprobs),
        "top_logprobs": sampling.top_logprobs is not None,
        "parallel_tool_calls": request.parallel_tool_calls is False and bool(request.tools),
        "prompt_cache_key": request.prompt_cache_key is not None,
        "service_tier": request.service_tier not in (None, "auto"),
        "user": request.user is not None,
        "tools.strict": any(tool.strict and tool.name != OUTPUT_TOOL for tool in request.tools),
        "cache_control": any(mark is not None for mark in marks(request)),
        "image_url.detail": _wants_detail(request),
        "messages[].name": any(
            not isinstance(message, ToolMessage) and message.name is not None
            for message in request.messages
        ),
    }
    return (name for name, is_asked in asked.items() if is_asked)


def _wants_detail(request: GenerationRequest) -> bool:
    """Whether an image is to be looked at in another way than the model's own."""
    return any(
        isinstance(part, Image) and part.detail in ("low", "high")
        for message in request.messages
        if isinstance(message, UserMessage)
        for part in message.content
    )
