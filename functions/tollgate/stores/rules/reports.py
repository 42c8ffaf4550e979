"""Reports of the scheduled work on the books."""

from msgspec import Struct


class MaintenanceReport(Struct, frozen=True, kw_only=True):
    """The counts of one round of WorkspaceMaintenance."""

    # Workspaces visited.
    workspaces: int
    # Workspaces that got more shards.
    grown: int
    # Teams and members whose states got more slices.
    sliced: int = 0
    # Entries that took back expired credit.
    expiries: int
    # Moves of credit between shards.
    moves: int
    # Budget alerts made.
    alerts: int
    # Workspaces that wait for the next round.
    failed: int


class WebhookReport(Struct, frozen=True, kw_only=True):
    """The counts of one round of webhooks."""

    # Events that endpoints took.
    sent: int = 0
    # Attempts that failed; most are repeated.
    failed: int = 0
    # Workspaces that wait for the next round.
    waiting: int = 0

    def __add__(self, other: "WebhookReport") -> "WebhookReport":
        """Return the counts of both."""
        return WebhookReport(
            sent=self.sent + other.sent,
            failed=self.failed + other.failed,
            waiting=self.waiting + other.waiting,
        )


class BrokenInvariant(Struct, frozen=True, kw_only=True):
    """An invariant of the books that does not hold."""

    workspace_id: str
    invariant: str
    expected_nano_usd: int
    found_nano_usd: int
