"""Reports of scheduled work on the books."""

from msgspec import Struct


class MaintenanceReport(Struct, frozen=True, kw_only=True):
    """The counts of one round of WorkspaceMaintenance."""

    workspaces: int
    """Workspaces visited."""
    grown: int
    """Workspaces that got more shards."""
    sliced: int = 0
    """Teams and members whose states got more slices."""
    expiries: int
    """Entries that took back expired credit."""
    moves: int
    """Moves of credit between shards."""
    alerts: int
    """Budget alerts created."""
    failed: int
    """Workspaces with work that failed and waits for the next round."""


class WebhookReport(Struct, frozen=True, kw_only=True):
    """The counts of one round of webhooks."""

    sent: int = 0
    """Events that endpoints accepted."""
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
    """An invariant of the books that is violated."""

    workspace_id: str
    invariant: str
    expected_nano_usd: int
    found_nano_usd: int
