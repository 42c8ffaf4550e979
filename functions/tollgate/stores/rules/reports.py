"""Reports of the scheduled work on the books."""

from msgspec import Struct


class MaintenanceReport(Struct, frozen=True, kw_only=True):
    """The counts of one round of WorkspaceMaintenance."""

    workspaces: int
    grown: int
    moves: int
    alerts: int
    failed: int


class BrokenInvariant(Struct, frozen=True, kw_only=True):
    """An invariant of the books that does not hold."""

    workspace_id: str
    invariant: str
    expected_nano_usd: int
    found_nano_usd: int
