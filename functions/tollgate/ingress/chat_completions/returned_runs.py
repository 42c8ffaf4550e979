"""Parses an earlier answer with server tool runs into messages, round by round.

Clients send text, reasoning, calls and runs back in separate lists. Their positions show what
belongs to the same round; every round except the last ends with runs and their results.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from msgspec.structs import replace

from tollgate.core.content import MadeImage, Refusal, Text, ToolCall
from tollgate.core.request import AssistantContent, AssistantMessage, Message
from tollgate.ingress.chat_completions.thoughts import PlacedThought, place_thoughts
from tollgate.ingress.chat_completions.wire import messages as wire
from tollgate.ingress.shared.tool_runs import FinishedRun


def parse_rounds(
    message: wire.AssistantMessage,
    *,
    thoughts: Sequence[PlacedThought],
    visible: Sequence[Text | Refusal],
    calls: Sequence[ToolCall],
    images: Sequence[MadeImage],
) -> Iterator[Message]:
    """Yield the messages of an answer with server tool runs, round by round."""
    runs = message.server_tool_calls or []
    firsts = _first_runs(runs, thoughts)
    text_start, words = 0, _Words(visible)
    waiting = [thought for thought in thoughts if thought.runs >= len(runs)]
    for first, after in pairwise((*firsts, len(runs))):
        text_end = max(text_start, _text_before(runs[first]))
        # Reasoning that precedes the first run of a round belongs to that round.
        own_thoughts = [thought for thought in thoughts if thought.runs == first]
        content = [*_said(own_thoughts, words, text_start, text_end)]
        text_start = text_end
        group = [_finished(run) for run in runs[first:after]]
        content += [run.call for run in group]
        if after == len(runs) and not waiting and words.length <= text_start:
            # Nothing follows the last runs, so calls to the caller's tools belong to the same round
            # as they do.
            content += calls
            calls = ()
        yield AssistantMessage(content=tuple(content), name=message.name)
        for run in group:
            yield run.result
    rest = [
        *_said(waiting, words, text_start, None, calls=calls),
        *(part for part in visible if isinstance(part, Refusal)),
        *images,
    ]
    if rest:
        yield AssistantMessage(content=tuple(rest), name=message.name)


def _first_runs(
    runs: Sequence[wire.ReturnedRun], thoughts: Sequence[PlacedThought]
) -> Iterator[int]:
    """Yield the index of each round's first run, which new text or reasoning precedes."""
    thought_before = {thought.runs for thought in thoughts}
    furthest = -1
    for index, run in enumerate(runs):
        if _text_before(run) > furthest or index in thought_before:
            yield index
        furthest = max(furthest, _text_before(run))


def _said(
    thoughts: Sequence[PlacedThought],
    words: "_Words",
    start: int,
    end: int | None,
    *,
    calls: Sequence[ToolCall] = (),
) -> Iterator[AssistantContent]:
    """Yield the text from `start` to `end` and the reasoning in that range, then the calls."""
    placed_thoughts = [
        PlacedThought(thought.reasoning, thought.calls, max(0, thought.text_length - start))
        for thought in thoughts
    ]
    yield from place_thoughts(placed_thoughts, words.cut(start, end), calls)


class _Words:
    """The text of an answer, cut into one range of characters per round.

    The start of a range is found by binary search, because an answer may have thousands of parts
    and hundreds of rounds.
    """

    def __init__(self, visible: Sequence[Text | Refusal]) -> None:
        self._parts = [part for part in visible if isinstance(part, Text)]
        self._ends = [*accumulate(len(part.text) for part in self._parts)]

    @property
    def length(self) -> int:
        """The number of characters in the text."""
        return self._ends[-1] if self._ends else 0

    def cut(self, start: int, end: int | None) -> Iterator[Text]:
        """Yield the text from `start` to `end` (None means to the end), part by part."""
        first = bisect_right(self._ends, start)
        at = self._ends[first - 1] if first else 0
        for index in range(first, len(self._parts)):
            part = self._parts[index]
            if end is not None and at >= end:
                return
            piece = part.text[max(start - at, 0) : None if end is None else end - at]
            at += len(part.text)
            if piece:
                # The prompt is cached up to the end of a marked part, so its last piece is marked.
                ends_here = end is None or at <= end
                yield replace(part, text=piece, cache=part.cache if ends_here else None)


def _text_before(run: wire.ReturnedRun) -> int:
    return run.after.text if run.after else 0


def _finished(run: wire.ReturnedRun) -> FinishedRun:
    error = run.error or ("unavailable" if run.status == "failed" else None)
    return FinishedRun(
        id=run.id, tool=run.name, arguments=run.arguments, text=run.result, error=error
    )
