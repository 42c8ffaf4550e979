"""Reports of the scheduled work on the books."""

from msgspec import Struct


class MaintenanceReport(Struct, frozen=True, kw_only=True):
    """The counts of one round of WorkspaceMaintenance."""

    # Workspaces visited.
    workspaces: int
    # Workspaces that got more shards.
    grown: int
    # Entries that took back expired credit.
    expiries: int
    # Moves of credit between shards.
    moves: int
    # Budget alerts made.
    alerts: int
    # Workspaces that wait for the next round.
    failed: int


class BrokenInvariant(Struct, frozen=True, kw_only=True):
    """An invariant of the books that does not hold."""

    workspace_id: str
    invariant: str
    expected_nano_usd: int
    found_nano_usd: int
