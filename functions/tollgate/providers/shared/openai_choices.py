"""The demultiplexer for a native `n`: each choice gets a stream with one choice.

It fits every format by OpenAI whose chunks have `choices` with an `index`.
"""

from collections.abc import Iterator
from typing import Final

import pydantic_core

from tollgate.core.json_value import JsonValue
from tollgate.providers.ports.base import Frame
from tollgate.providers.shared.refusals import malformed_error

_END: Final = b"[DONE]"


class ChoiceDemultiplexer:
    """Splits the frames of one stream by choice.

    Usage covers all choices and is passed to the first choice only, so that a sum over the choices
    counts it once. Frames that belong to no choice (errors, the end) are passed to every choice.
    """

    def __init__(self, provider: str, choices: int) -> None:
        self._provider = provider
        self._choices = choices

    def feed(self, frame: Frame) -> Iterator[tuple[int, Frame]]:
        """Yield pairs of choice and frame; raise UpstreamError for an unrequested choice."""
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
        """Return the chunk in a frame; None for any other frame, which goes to every decoder."""
        if frame.data.strip() in (b"", _END):
            return None
        try:
            chunk: JsonValue = pydantic_core.from_json(frame.data)
        except ValueError:
            return None
        return chunk if isinstance(chunk, dict) and not chunk.get("error") else None


def _frame(frame: Frame, chunk: dict[str, JsonValue]) -> Frame:
    return Frame(data=pydantic_core.to_json(chunk), event=frame.event)
