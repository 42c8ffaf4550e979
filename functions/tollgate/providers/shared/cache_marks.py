"""Finds the cache marks in a request and limits their number; a provider caches the prompt up to
each mark.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from msgspec.structs import replace

from tollgate.core.content import CacheMark, Document, Image, Part, Text, ToolCall, UserContent
from tollgate.core.request import GenerationRequest, Message, Tool

_Marked = TypeVar("_Marked", bound=Tool | Text | Image | Document | ToolCall)


def keep_last_marks(request: GenerationRequest, marks_max: int) -> tuple[GenerationRequest, bool]:
    """Return the request with at most `most` cache marks, and whether it had more.

    The last marks are kept, because the prompt up to a later mark includes all earlier prefixes.
    Tools come before messages.
    """
    excess = sum(mark is not None for mark in marks(request)) - marks_max
    if excess <= 0:
        return request, False
    thinning = _Thinning(excess)
    tools = tuple(map(thinning.unmarked, request.tools))
    messages = tuple(map(thinning.message, request.messages))
    return replace(request, tools=tools, messages=messages), True


def marks(request: GenerationRequest) -> Iterator[CacheMark | None]:
    """Yield the cache mark of each tool and part that can have one; None if it has none."""
    yield from (tool.cache for tool in request.tools)
    for message in request.messages:
        for part in message.content:
            if isinstance(part, Text | Image | Document | ToolCall):
                yield part.cache


def has_marked_calls(request: GenerationRequest) -> bool:
    """Return whether a tool call in the history has a cache mark."""
    return any(
        isinstance(part, ToolCall) and part.cache is not None
        for message in request.messages
        for part in message.content
    )


class _Thinning:
    """Removes the first `excess` cache marks."""

    def __init__(self, excess: int) -> None:
        self._excess = excess

    def message(self, message: Message) -> Message:
        return replace(message, content=tuple(self._parts(message.content)))

    def _parts(self, parts: Sequence[Part | UserContent]) -> Iterator[Part | UserContent]:
        for part in parts:
            match part:
                case Text() | Image() | Document() | ToolCall():
                    yield self.unmarked(part)
                case _:
                    yield part

    def unmarked(self, marked: _Marked) -> _Marked:
        if not self._excess or marked.cache is None:
            return marked
        self._excess -= 1
        return replace(marked, cache=None)
