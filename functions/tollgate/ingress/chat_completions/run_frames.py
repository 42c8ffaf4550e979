"""Renders runs of the gateway's tools in one choice: what a client sends back, and progress.

`server_tool_calls` of a message, streamed as one delta before the last, has every run whole, with
the text that the model was given. `delta.server_tool_events` has the progress of those tools whose
caller requested it. Entries of both have an index, without which OpenAI's SDKs refuse a stream.
"""

from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct

from tollgate.core.content import ServerToolRun
from tollgate.core.events import Note
from tollgate.core.json_value import JsonValue
from tollgate.core.server_tools import RunResult, Source
from tollgate.ingress.shared.tool_runs import finished_run, run_result

_Json = dict[str, JsonValue]


def render_run(
    ordinal: int, run: ServerToolRun, notes: Iterable[Note], *, text_length: int
) -> _Json:
    """Render an entry of `server_tool_calls`, after so much text."""
    result = run_result(notes)
    entry: _Json = {
        "index": ordinal,
        "id": run.id,
        "type": "server_tool",
        "name": run.tool,
        "arguments": run.arguments,
        "status": _status(result),
        "result": finished_run(run, result, run.id).text,
        **_outcome(result),
    }
    if text_length:
        entry["after"] = {"text": text_length}
    return entry


def _status(result: RunResult) -> str:
    return "completed" if result.error is None else "failed"


def _outcome(result: RunResult) -> _Json:
    if result.error is not None:
        return {"error": result.error}
    return {"sources": [_source(source) for source in result.sources]}


def _source(source: Source) -> _Json:
    shown: _Json = {"url": source.url, "title": source.title}
    if source.published is not None:
        shown["published"] = source.published
    return shown


class _KeptRun(Struct):
    run: ServerToolRun
    text_length: int
    notes: list[Note]


class RunFrames:
    """The runs of one choice of a stream; `told` are the tools with frames of their progress."""

    def __init__(self, told: Collection[str]) -> None:
        self._told = told
        self._runs: dict[int, _KeptRun] = {}
        self._events = 0

    @property
    def started(self) -> int:
        """The number of runs so far."""
        return len(self._runs)

    def start(self, index: int, run: ServerToolRun, text_length: int) -> Iterator[_Json]:
        """Yield the deltas with which a run begins."""
        self._runs[index] = _KeptRun(run, text_length, [])
        yield from self._event(run, "started", {"arguments": run.arguments})

    def note(self, index: int, note: Note) -> None:
        """Keep the result of a run."""
        self._runs[index].notes.append(note)

    def end(self, index: int) -> Iterator[_Json]:
        """Yield the deltas with which a run ends."""
        ended = self._runs[index]
        result = run_result(ended.notes)
        yield from self._event(ended.run, _status(result), _outcome(result))

    def finish(self) -> _Json:
        """Return the delta with every run, whole.

        It is one delta: of a list that OpenAI's SDK for Node does not know it keeps the last piece.
        """
        return {
            "server_tool_calls": [
                render_run(ordinal, each.run, each.notes, text_length=each.text_length)
                for ordinal, each in enumerate(self._runs.values())
            ]
        }

    def _event(self, run: ServerToolRun, status: str, more: _Json) -> Iterator[_Json]:
        if run.tool not in self._told:
            return
        # Some accumulators join texts of entries with one index: every event has its own.
        place, self._events = self._events, self._events + 1
        event: _Json = {
            "index": place,
            "id": run.id,
            "type": "server_tool",
            "tool": run.tool,
            "status": status,
            **more,
        }
        yield {"server_tool_events": [event]}
