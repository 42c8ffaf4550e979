"""The keys of jobs in the core table."""

from typing import Final

from tollgate.aws.attributes import Item, string
from tollgate.stores.aws.items import AnyItem

# The partition that lists the jobs of all workspaces that have not ended.
OPEN_BATCHES: Final = "BATCHES"


def batch_partition(workspace_id: str) -> str:
    """Return the core table's partition of a workspace's jobs."""
    return f"B#{workspace_id}"


def job_event_row(at_ms: int, bare_id: str = "") -> str:
    """Return the sort key of the event of a job that ended then; without an id, of the first."""
    return f"E#{at_ms:013d}.{bare_id}"


def job_key(partition: str, row: str) -> Item:
    """Return the key of a job, in its workspace or in OPEN_BATCHES; jobs of a kind sort by time."""
    return {AnyItem.PARTITION: string(partition), AnyItem.SORT: string(row)}
