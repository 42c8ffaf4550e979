"""Reports on scheduled work and erasures."""

from msgspec import Struct


class MaintenanceReport(Struct, frozen=True, kw_only=True):
    """The counts from one round of WorkspaceMaintenance."""

    workspaces: int
    """Visited workspaces."""
    grown: int
    """Workspaces with more shards."""
    sliced: int = 0
    """Teams and members with more slices."""
    expiries: int
    """Credit entries that took back expired credit."""
    moves: int
    """Moves of credit between shards."""
    alerts: int
    """New budget alerts."""
    failed: int
    """Workspaces in which some work failed and waits for the next round."""


class WebhookReport(Struct, frozen=True, kw_only=True):
    """The counts from one round of webhooks."""

    sent: int = 0
    """Accepted events."""
    failed: int = 0
    """Failed attempts, most of which are retried."""
    waiting: int = 0
    """Workspaces that wait for the next round."""

    def __add__(self, other: "WebhookReport") -> "WebhookReport":
        """Return the sums of both reports' counts."""
        return WebhookReport(
            sent=self.sent + other.sent,
            failed=self.failed + other.failed,
            waiting=self.waiting + other.waiting,
        )


class BrokenInvariant(Struct, frozen=True, kw_only=True):
    """A violated invariant of a workspace's books."""

    workspace_id: str
    invariant: str
    expected_nano_usd: int
    found_nano_usd: int


class ErasedUser(Struct, frozen=True, kw_only=True):
    """The result of an erasure, which its audit entry shows too."""

    user: str
    """SHA-256 of the erased id, so that the proof does not have the id."""
    records: int
    days: tuple[str, ...]
    """The UTC days of the records."""
    unreadable: tuple[str, ...]
    """Names of corrupt records, which may have the id."""
