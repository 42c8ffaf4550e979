"""Splits OpenAI-like streams by choice, and interprets their finish reasons."""

from collections.abc import Iterator
from typing import Final

import pydantic_core

from tollgate.core.events import Finish
from tollgate.core.json_value import JsonValue
from tollgate.providers.ports.base import Frame
from tollgate.providers.shared.refusals import malformed_error

_END: Final = b"[DONE]"
# The meaning of each finish reason, in lower case. An unknown reason counts as `stop`, and the
# caller sees the raw finish reason. `eos` is Together's, `eos_token` Hugging Face's, `model_length`
# Mistral's, `sensitive` Z.ai's.
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

# Finish reasons of incomplete answers. `insufficient_system_resource` is DeepSeek's,
# `network_error` Z.ai's, and the last two are Google's.
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


class ChoiceDemultiplexer:
    """Splits a stream with several choices into one stream per choice, by `index`.

    Usage is for all choices together and must be counted once, so only the first stream gets it.
    Every stream gets the frames that belong to no choice: errors and the end.
    """

    def __init__(self, provider: str, choices: int) -> None:
        self._provider = provider
        self._choices = choices

    def feed(self, frame: Frame) -> Iterator[tuple[int, Frame]]:
        """Yield pairs of choice index and frame; raise UpstreamError for an unrequested choice."""
        chunk = self._chunk(frame)
        choices = None if chunk is None else chunk.get("choices")
        if chunk is None or not isinstance(choices, list):
            for index in range(self._choices):
                yield index, frame
            return
        usage = chunk.pop("usage", None)
        if usage is not None:
            yield 0, _frame(frame, {**chunk, "choices": [], "usage": usage})
        for choice in choices:
            if not isinstance(choice, dict):
                raise malformed_error(self._provider, "a frame of unknown form")
            match choice.get("index", 0):
                case int(index) if 0 <= index < self._choices:
                    yield index, _frame(frame, {**chunk, "choices": [{**choice, "index": 0}]})
                case _:
                    raise malformed_error(self._provider, "a choice that was not requested")

    def _chunk(self, frame: Frame) -> dict[str, JsonValue] | None:
        """Return the chunk in a frame; None for the end, an error or unreadable data."""
        if frame.data.strip() in (b"", _END):
            return None
        try:
            chunk: JsonValue = pydantic_core.from_json(frame.data)
        except ValueError:
            return None
        return chunk if isinstance(chunk, dict) and not chunk.get("error") else None


def _frame(frame: Frame, chunk: dict[str, JsonValue]) -> Frame:
    return Frame(data=pydantic_core.to_json(chunk), event=frame.event)


def finish_of(reason: str, provider: str) -> Finish:
    """Return the meaning of a finish reason; raise UpstreamError if the answer is incomplete."""
    word = reason.lower()
    if word in _BROKEN:
        raise malformed_error(provider, f"the finish reason {word!r}")
    return _FINISH.get(word, "stop")
