"""Reads runs of the gateway's tools that come back as items."""

from tollgate.ingress.responses.wire import input_items as wire
from tollgate.ingress.shared.tool_runs import FinishedRun, unpack_run


def read_run(item: wire.SearchItem | wire.ToolRunItem) -> FinishedRun | None:
    """Return the run that an item carries; None for a search that was not run here."""
    if isinstance(item, wire.SearchItem):
        return unpack_run(item.encrypted_content or "")
    error = "unavailable" if item.status == "failed" else None
    return FinishedRun(
        id=item.id, tool=item.name, arguments=item.arguments, text=item.output or "", error=error
    )
