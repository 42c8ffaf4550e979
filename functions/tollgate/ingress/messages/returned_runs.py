"""Reads runs of the gateway's tools from blocks that clients send back."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace
from pydantic_core import to_json

from tollgate.core.content import ServerToolId
from tollgate.ingress.messages.run_blocks import OWN_ID
from tollgate.ingress.messages.wire import blocks
from tollgate.ingress.shared.media import field_refusal
from tollgate.ingress.shared.tool_runs import FinishedRun, unpack_run

_SHOWN: Final[Mapping[object, ServerToolId]] = {
    "web_search": "web_search",
    "web_fetch": "web_fetch",
}


def read_use(block: blocks.OwnBlock, path: str) -> FinishedRun | None:
    """Return the run that a block begins, as failed until its result; None for Anthropic's own."""
    stated = block.model_extra or {}
    id_ = stated.get("id")
    if block.type != "server_tool_use" or not isinstance(id_, str) or not id_.startswith(OWN_ID):
        return None
    tool, arguments = _SHOWN.get(stated.get("name")), stated.get("input")
    if tool is None:
        raise field_refusal(f"{path}.name", "must be 'web_search' or 'web_fetch'")
    if not isinstance(arguments, dict):
        raise field_refusal(f"{path}.input", "must be an object")
    return FinishedRun(
        id=id_, tool=tool, arguments=to_json(arguments).decode(), error="unavailable"
    )


def run_of_result(block: blocks.OwnBlock) -> str | None:
    """Return the id of the run whose result a block has; None for Anthropic's own blocks."""
    id_ = (block.model_extra or {}).get("tool_use_id")
    if block.type.endswith("_tool_result") and isinstance(id_, str) and id_.startswith(OWN_ID):
        return id_
    return None


def with_result(run: FinishedRun, block: blocks.OwnBlock) -> FinishedRun:
    """Return a run with the result from a block."""
    content = (block.model_extra or {}).get("content")
    match content:
        case {"error_code": str(error)}:
            return replace(run, error=error)
        case {"content": {"source": {"data": str(text)}}}:
            return replace(run, text=text, error=None)
        case [{"encrypted_content": str(packed)}, *_] if known := unpack_run(packed):
            return replace(run, text=known.text, error=None)
        case list():
            return replace(run, text=_listed(content), error=None)
        case _:
            return run


def _listed(results: list[Any]) -> str:
    """Return titles and URLs of search results, for a client that kept nothing else."""
    lines = [
        f"{entry.get('title') or ''} {entry['url']}".strip()
        for entry in results
        if isinstance(entry, dict) and isinstance(entry.get("url"), str)
    ]
    return "\n".join(lines) or "Nothing was found."
