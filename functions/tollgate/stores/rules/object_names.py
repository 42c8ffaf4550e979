"""The names of workspaces and batches in the keys of stored objects."""

from hashlib import sha256
from typing import Final

from tollgate.core.batches import Batch

# A lifecycle rule of the bucket, or the sweeper, deletes leftover objects below this prefix.
_BATCHES: Final = "batches/"


def workspace_folder(workspace_id: str) -> str:
    """Return a workspace's name in object keys: a hash, because people choose workspace ids."""
    return sha256(workspace_id.encode()).hexdigest()[:32]


def batch_folder(batch: Batch) -> str:
    """Return the prefix of a batch's intermediate results, which ends in `/`."""
    return f"{_BATCHES}{workspace_folder(batch.workspace_id)}/{batch.id}/"
