"""Output items for server tool runs, in the form of the tools that OpenAI runs.

Searches and fetched pages become `web_search_call`. OpenAI has no item type for other tools, so
their runs become `mcp_call` with the gateway as server; clients never run such calls.
https://platform.openai.com/docs/api-reference/responses/object (2026-11-22)
"""

from collections.abc import Iterator

from pydantic_core import to_json
from typing_extensions import override

from tollgate.core.content import Part, ServerToolRun
from tollgate.core.events import Note
from tollgate.core.server_tools import RunResult
from tollgate.ingress.responses.output_items import Event, Json, OutputItem
from tollgate.ingress.shared.tool_runs import (
    SERVER_LABEL,
    finished_run,
    pack_run,
    run_argument,
    run_result,
)


def run_item(place: int, suffix: str, run: ServerToolRun) -> "SearchItem | ToolRunItem":
    """Return the output item for a server tool run."""
    if run.tool in ("web_search", "web_fetch"):
        return SearchItem(place, f"ws_{suffix}", run)
    return ToolRunItem(place, f"mcp_{suffix}", run)


class _RunItem(OutputItem):
    """The base class of items for runs, which stores the run's result."""

    comes_whole = True

    def __init__(self, index: int, id_: str, run: ServerToolRun) -> None:
        super().__init__(index, id_)
        self._run = run
        self._notes: list[Note] = []

    @property
    def _result(self) -> RunResult:
        return run_result(self._notes)

    def _status(self) -> str:
        return "completed" if self._result.error is None else "failed"

    @override
    def note(self, index: int, note: Note) -> Iterator[Event]:
        self._notes.append(note)
        return iter(())


class SearchItem(_RunItem):
    """A web search, or a web page that was read."""

    @override
    def start(self, index: int, part: Part) -> Iterator[Event]:
        self.open_parts.add(index)
        yield self.event("web_search_call.in_progress")
        yield self.event("web_search_call.searching")

    @override
    def close(self) -> Iterator[Event]:
        # OpenAI has no event for a failed search, so only the status of the item shows the failure.
        if self._result.error is None:
            yield self.event("web_search_call.completed")

    @override
    def render(self, status: str) -> bytes:
        item: Json = {"type": "web_search_call", "id": self.id}
        if status == "in_progress":
            return to_json(item | {"status": status, "action": self._action()})
        item |= {
            "status": self._status(),
            "action": self._action() | self._sources(),
            "encrypted_content": pack_run(finished_run(self._run, self._result, self.id)),
        }
        return to_json(item)

    def _action(self) -> Json:
        if self._run.tool == "web_fetch":
            return {"type": "open_page", "url": run_argument(self._run, "url") or None}
        query = run_argument(self._run, "query")
        return {"type": "search", "query": query, "queries": [query]}

    def _sources(self) -> Json:
        if self._run.tool == "web_fetch":
            return {}
        return {"sources": [{"type": "url", "url": source.url} for source in self._result.sources]}


class ToolRunItem(_RunItem):
    """A run of a tool for which OpenAI has no item type."""

    @override
    def start(self, index: int, part: Part) -> Iterator[Event]:
        self.open_parts.add(index)
        yield self.event("mcp_call.in_progress")
        # The item starts without arguments, as with OpenAI; pydantic-ai relies on that.
        yield self.event("mcp_call_arguments.delta", delta=self._run.arguments)
        yield self.event("mcp_call_arguments.done", arguments=self._run.arguments)

    @override
    def close(self) -> Iterator[Event]:
        yield self.event(f"mcp_call.{self._status()}")

    @override
    def render(self, status: str) -> bytes:
        is_new = status == "in_progress"
        item: Json = {
            "type": "mcp_call",
            "id": self.id,
            "status": status if is_new else self._status(),
            "server_label": SERVER_LABEL,
            "name": self._run.tool,
            "arguments": "" if is_new else self._run.arguments,
            "output": None if is_new else finished_run(self._run, self._result, self.id).text,
            "error": None,
        }
        return to_json(item)
