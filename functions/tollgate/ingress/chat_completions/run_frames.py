"""Renders the server tool runs of one choice: the completed runs, and their progress.

`server_tool_calls` has all runs with their result texts, so that clients can send them back; in a
stream it is in the second-to-last delta. `delta.server_tool_events` reports the progress of tools
for which the caller requested events. All entries have an index, which OpenAI's SDKs require.
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
    """Render an entry for `server_tool_calls`; `text_length` characters precede the run."""
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
    rendered: _Json = {"url": source.url, "title": source.title}
    if source.published is not None:
        rendered["published"] = source.published
    return rendered


class _StoredRun(Struct):
    run: ServerToolRun
    text_length: int
    notes: list[Note]


class RunFrames:
    """The server tool runs in one choice; frames report the progress of `reported_tools`."""

    def __init__(self, reported_tools: Collection[str]) -> None:
        self._reported_tools = reported_tools
        self._runs: dict[int, _StoredRun] = {}
        self._events = 0

    @property
    def started(self) -> int:
        """The number of runs so far."""
        return len(self._runs)

    def start(self, index: int, run: ServerToolRun, text_length: int) -> Iterator[_Json]:
        """Store a new run, and yield the delta that reports its start."""
        self._runs[index] = _StoredRun(run, text_length, [])
        yield from self._event(run, "started", {"arguments": run.arguments})

    def note(self, index: int, note: Note) -> None:
        """Store the result of a run."""
        self._runs[index].notes.append(note)

    def end(self, index: int) -> Iterator[_Json]:
        """Yield the delta that reports the end of a run."""
        stored_run = self._runs[index]
        result = run_result(stored_run.notes)
        yield from self._event(stored_run.run, _status(result), _outcome(result))

    def finish(self) -> _Json:
        """Return the delta with all runs.

        OpenAI's SDK for Node keeps only the last delta of an unknown list, so one delta has all.
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
        # Every event has a new index, because some clients concatenate strings with equal indices.
        index, self._events = self._events, self._events + 1
        event: _Json = {
            "index": index,
            "id": run.id,
            "type": "server_tool",
            "tool": run.tool,
            "status": status,
            **more,
        }
        yield {"server_tool_events": [event]}
