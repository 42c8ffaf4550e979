"""Renders runs of the gateway's tools in one choice: the finished runs, and their progress.

`server_tool_calls` has all runs with the text that the model got, so that the client can send the
runs back; a stream has the field in the delta before the last. `delta.server_tool_events` has the
progress of the tools for which the caller requested events. Entries of both have an index, because
OpenAI's SDKs refuse a stream without indices.
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
    """Render an entry of `server_tool_calls`; `text_length` characters of text precede the run."""
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
    """The runs of one choice of a stream; frames report the progress of `reported_tools`."""

    def __init__(self, reported_tools: Collection[str]) -> None:
        self._reported_tools = reported_tools
        self._runs: dict[int, _KeptRun] = {}
        self._events = 0

    @property
    def started(self) -> int:
        """The number of runs so far."""
        return len(self._runs)

    def start(self, index: int, run: ServerToolRun, text_length: int) -> Iterator[_Json]:
        """Keep a new run, and yield the delta that reports its start."""
        self._runs[index] = _KeptRun(run, text_length, [])
        yield from self._event(run, "started", {"arguments": run.arguments})

    def note(self, index: int, note: Note) -> None:
        """Keep the result of a run."""
        self._runs[index].notes.append(note)

    def end(self, index: int) -> Iterator[_Json]:
        """Yield the delta that reports the end of a run."""
        ended = self._runs[index]
        result = run_result(ended.notes)
        yield from self._event(ended.run, _status(result), _outcome(result))

    def finish(self) -> _Json:
        """Return the delta with all runs.

        All runs are sent in one delta, because OpenAI's SDK for Node keeps only the last piece of a
        list that the SDK does not know.
        """
        return {
            "server_tool_calls": [
                render_run(ordinal, finished.run, finished.notes, text_length=finished.text_length)
                for ordinal, finished in enumerate(self._runs.values())
            ]
        }

    def _event(self, run: ServerToolRun, status: str, more: _Json) -> Iterator[_Json]:
        if run.tool not in self._reported_tools:
            return
        # Some clients concatenate texts of entries with the same index, so every event has its own.
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
