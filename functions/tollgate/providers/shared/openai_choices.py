"""The demultiplexer of a native `n`: each choice gets a stream of its own, as if it were alone.

It fits every format of OpenAI's whose chunks have `choices` with an `index`.
"""

from collections.abc import Iterator
from typing import Final

import pydantic_core

from tollgate.core.json_value import JsonValue
from tollgate.providers.ports.base import Frame
from tollgate.providers.shared.refusals import malformed_error

_END: Final = b"[DONE]"


class ChoiceDemultiplexer:
    """Takes the frames of one stream and gives each choice its own.

    Usage covers all choices: it goes to the first, so that a sum over them counts it once. Frames
    that belong to no choice (errors, the end) go to every choice.
    """

    def __init__(self, provider: str, choices: int) -> None:
        self._provider = provider
        self._choices = choices

    def feed(self, frame: Frame) -> Iterator[tuple[int, Frame]]:
        """Yield the frames of each choice; UpstreamError for a choice that was not requested."""
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
        """Return the chunk in a frame; None for any other frame, which every decoder then reads."""
        if frame.data.strip() in (b"", _END):
            return None
        try:
            chunk: JsonValue = pydantic_core.from_json(frame.data)
        except ValueError:
            return None
        return chunk if isinstance(chunk, dict) and not chunk.get("error") else None


def _frame(frame: Frame, chunk: dict[str, JsonValue]) -> Frame:
    return Frame(data=pydantic_core.to_json(chunk), event=frame.event)
