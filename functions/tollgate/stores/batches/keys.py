"""The keys of batches in the core table."""

from typing import Final

from tollgate.aws.attributes import Item, string
from tollgate.stores.aws.items import AnyItem

# The partition that lists the batches of all workspaces that have not ended.
OPEN_BATCHES: Final = "BATCHES"


def batch_partition(workspace_id: str) -> str:
    """Return the core table's partition of a workspace's batches."""
    return f"B#{workspace_id}"


def batch_key(partition: str, bare_id: str) -> Item:
    """Return the key of a batch, in its workspace or in OPEN_BATCHES; batches sort by time."""
    return {AnyItem.PARTITION: string(partition), AnyItem.SORT: string(f"B#{bare_id}")}
