"""Jobs: stored work that runs later, while no caller waits."""

from msgspec import Struct


class Job(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a job's stored state that all kinds of jobs have."""

    id: str
    workspace_id: str
    key_id: str
    """The key under which the job runs."""
    member_id: str | None = None
    """The member that owns the job; None if no member does."""
    user: str | None = None
    """The end user that the request names; None for a batch, whose lines may name many."""
    revision: int = 0
    """The number of changes, by which concurrent changes are found."""

    @property
    def is_ended(self) -> bool:
        """True if nothing is left to do."""
        raise NotImplementedError

    @property
    def hold_ids(self) -> frozenset[str]:
        """The ids of holds for parts of the job that run at providers."""
        return frozenset()

    @property
    def event_type(self) -> str | None:
        """The type of the webhook event at the end of the job; None for no event."""
        raise NotImplementedError

    @property
    def kept_s(self) -> int:
        """Seconds for which an ended job is stored."""
        raise NotImplementedError
