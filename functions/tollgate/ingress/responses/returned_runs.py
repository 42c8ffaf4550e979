"""Reads runs of the gateway's tools from items that clients send back."""

from tollgate.ingress.responses.wire import input_items as wire
from tollgate.ingress.shared.tool_runs import FinishedRun, unpack_run


def read_run(item: wire.SearchItem | wire.ToolRunItem) -> FinishedRun | None:
    """Return the run in an item; None for a search that the gateway did not run."""
    if isinstance(item, wire.SearchItem):
        return unpack_run(item.encrypted_content or "")
    error = "unavailable" if item.status == "failed" else None
    return FinishedRun(
        id=item.id, tool=item.name, arguments=item.arguments, text=item.output or "", error=error
    )
