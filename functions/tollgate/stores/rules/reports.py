"""Reports on scheduled work."""

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


class SubjectReport(Struct, frozen=True, kw_only=True):
    """The counts from one round of erasures and legal holds."""

    finished: int = 0
    """Finished erasures."""
    open: int = 0
    """Erasures that a later round finishes."""
    held: int = 0
    """Erasures that wait for the end of a legal hold."""
    preserved: int = 0
    """Records on hold that no longer expire."""
    copied: int = 0
    """New copies of contents, responses and files on hold."""
    released: int = 0
    """Released holds, whose records expire again and whose copies are deleted."""
    failed: int = 0
    """Failed erasures and holds, which the next round continues."""

    def __add__(self, other: "SubjectReport") -> "SubjectReport":
        """Return the sums of both reports' counts."""
        names = SubjectReport.__struct_fields__
        return SubjectReport(**{name: getattr(self, name) + getattr(other, name) for name in names})


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
