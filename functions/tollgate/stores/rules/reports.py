"""What the scheduled work on the books finds and does."""

from msgspec import Struct


class CareReport(Struct, frozen=True, kw_only=True):
    """What one round did; `failed` workspaces wait for the next one."""

    workspaces: int
    grown: int
    moves: int
    alerts: int
    failed: int


class BrokenInvariant(Struct, frozen=True, kw_only=True):
    """An invariant that does not hold, in nano-dollars."""

    workspace_id: str
    invariant: str
    expected_nano_usd: int
    found_nano_usd: int
