"""The finish reasons of OpenAI-like servers."""

from typing import Final

from tollgate.core.events import Finish
from tollgate.providers.shared.refusals import malformed_error

# In lower case. An unknown reason counts as `stop`; the caller sees it as the raw finish reason.
# `eos` is Together's, `eos_token` Hugging Face's, `model_length` Mistral's, `sensitive` Z.ai's.
_FINISH: Final[dict[str, Finish]] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
}

# Finish reasons of an incomplete answer. DeepSeek's stands for a lack of capacity, Z.ai's for a
# network failure, and the last two are Google's for a malformed tool call.
_BROKEN: Final = frozenset(
    {
        "abort",
        "error",
        "insufficient_system_resource",
        "network_error",
        "malformed_function_call",
        "function_call_filter: malformed_function_call",
    }
)


def finish_of(reason: str, provider: str) -> Finish:
    """Return the meaning of a finish reason; raise UpstreamError if the answer is incomplete."""
    word = reason.lower()
    if word in _BROKEN:
        raise malformed_error(provider, f"the finish reason {word!r}")
    return _FINISH.get(word, "stop")
