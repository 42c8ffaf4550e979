"""The names of workspaces in the keys of stored objects."""

from hashlib import sha256


def workspace_folder(workspace_id: str) -> str:
    """Return a workspace's name in object keys: a hash, since users choose workspace ids."""
    return sha256(workspace_id.encode()).hexdigest()[:32]
