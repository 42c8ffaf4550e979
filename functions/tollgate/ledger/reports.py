"""What the scheduled work on the books finds and does."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CareReport:
    """What one round did; `failed` workspaces wait for the next one."""

    workspaces: int
    grown: int
    moves: int
    alerts: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An invariant that does not hold, in nano-dollars."""

    workspace_id: str
    invariant: str
    expected_nano_usd: int
    found_nano_usd: int
