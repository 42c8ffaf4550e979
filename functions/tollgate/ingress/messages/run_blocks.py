"""Renders server tool runs as content blocks.

Searches and fetched pages become the blocks of Anthropic's own tools. Other tools have no block
type, so their runs are packed into the signature of a thinking block without text.
https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool and /web-fetch-tool
(2026-11-22)
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from tollgate.core.content import ServerToolId, ServerToolRun
from tollgate.core.events import Note, PartDelta, PartEnd, PartNote, PartStart
from tollgate.core.json_value import JsonValue
from tollgate.core.server_tools import RunResult, Source
from tollgate.ingress.base import ServedBy
from tollgate.ingress.messages.block_frames import RenderedBlock, whole_block
from tollgate.ingress.shared.tool_runs import (
    FinishedRun,
    finished_run,
    pack_run,
    run_argument,
    run_arguments,
    run_result,
)

OWN_ID: Final = "srvtoolu_tollgate_"
# Error codes that Anthropic's clients know, by tool; other errors become `unavailable`.
_SEARCH_ERRORS: Final = frozenset(
    {"max_uses_exceeded", "query_too_long", "request_too_large", "too_many_requests"}
)
_FETCH_ERRORS: Final = frozenset(
    {
        "content_too_large",
        "max_uses_exceeded",
        "too_many_requests",
        "unsupported_content_type",
        "url_not_accessible",
        "url_not_allowed",
        "url_not_in_prior_context",
        "url_too_long",
    }
)
_ERRORS: Final[Mapping[ServerToolId, frozenset[str]]] = {
    "web_search": _SEARCH_ERRORS,
    "web_fetch": _FETCH_ERRORS,
}


class RunFacts(Struct, frozen=True):
    """Facts about a run that its blocks contain but the run itself does not."""

    id: str
    retrieved_at: str
    """The start time of the answer, because runs do not record their own time."""


def run_facts(served: ServedBy, ordinal: int) -> RunFacts:
    """Return the facts about a run; its id has only characters that Anthropic's ids allow."""
    began = datetime.fromtimestamp(served.created_s, UTC)
    id_ = f"{OWN_ID}{served.generation_id.replace('-', '_')}_{ordinal}"
    return RunFacts(id_, began.strftime("%Y-%m-%dT%H:%M:%SZ"))


def render_run_blocks(
    run: ServerToolRun, notes: Iterable[Note], facts: RunFacts
) -> Iterator[RenderedBlock]:
    """Yield the blocks for a completed run."""
    if run.tool in _ERRORS:
        yield _use(run, facts.id)
        yield _result(run, notes, facts)
    else:
        yield _carrier(run, notes, facts.id)


class OpenRun:
    """The blocks for one run in a stream, and their unsent events."""

    def __init__(self, run: ServerToolRun, facts: RunFacts) -> None:
        self.part = run
        self._facts = facts
        self._notes: list[Note] = []
        self._blocks_sent = 0
        self.has_ended = False
        self.blocks = 2 if run.tool in _ERRORS else 1

    def take(self, event: PartStart | PartDelta | PartNote | PartEnd) -> None:
        """Store an event of the run: its result or its end."""
        match event:
            case PartNote(note=note):
                self._notes.append(note)
            case PartEnd():
                self.has_ended = True
            case _:
                pass

    def frames(self, index: int) -> Iterator[bytes]:
        """Yield the unsent frames; `index` is the position of the run's first block."""
        if self.part.tool in _ERRORS and self._blocks_sent == 0:
            self._blocks_sent = 1
            yield from whole_block(index, _use(self.part, self._facts.id))
        if self.has_ended:
            blocks = [*render_run_blocks(self.part, self._notes, self._facts)]
            yield from whole_block(index + self._blocks_sent, blocks[self._blocks_sent])


def _use(run: ServerToolRun, id_: str) -> RenderedBlock:
    return {
        "type": "server_tool_use",
        "id": id_,
        "name": run.tool,
        "input": run_arguments(run),
        "caller": {"type": "direct"},
    }


def _result(run: ServerToolRun, notes: Iterable[Note], facts: RunFacts) -> RenderedBlock:
    result = run_result(notes)
    finished = finished_run(run, result, facts.id)
    content: JsonValue
    if result.error is not None:
        content = {
            "type": f"{run.tool}_tool_result_error",
            "error_code": _error_code(run.tool, result.error),
        }
    elif run.tool == "web_search":
        content = _search_results(result.sources, finished)
    else:
        content = _page(run, result, finished, facts)
    return {
        "type": f"{run.tool}_tool_result",
        "tool_use_id": facts.id,
        "content": content,
        "caller": {"type": "direct"},
    }


def _carrier(run: ServerToolRun, notes: Iterable[Note], id_: str) -> RenderedBlock:
    packed = pack_run(finished_run(run, run_result(notes), id_))
    return {"type": "thinking", "thinking": "", "signature": packed}


def _error_code(tool: ServerToolId, error: str) -> str:
    if error == "invalid_input":
        return "invalid_tool_input"
    return error if error in _ERRORS[tool] else "unavailable"


def _search_results(sources: Iterable[Source], finished: FinishedRun) -> list[JsonValue]:
    """Return the search results; the first one contains the packed run."""
    results: list[JsonValue] = []
    for source in sources:
        results.append(
            {
                "type": "web_search_result",
                "url": source.url,
                "title": source.title,
                "page_age": source.published,
                "encrypted_content": "" if results else pack_run(finished),
            }
        )
    return results


def _page(
    run: ServerToolRun, result: RunResult, finished: FinishedRun, facts: RunFacts
) -> RenderedBlock:
    source = next(iter(result.sources), Source(url=run_argument(run, "url")))
    return {
        "type": "web_fetch_result",
        "url": source.url,
        # The AI SDK requires `retrieved_at`, and rejects null.
        "retrieved_at": facts.retrieved_at,
        "content": {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": finished.text},
            "title": source.title or None,
        },
    }
