"""Who is calling."""

from dataclasses import dataclass
from typing import Literal

KeyRole = Literal["inference", "management"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A key that was found, enabled and not expired.

    `models` are globs of model slugs the key may use; None allows all.
    `shards` is how many wallet items the workspace's money is spread over.
    """

    key_id: str
    workspace_id: str
    role: KeyRole
    label: str
    tier: str | None = None
    models: tuple[str, ...] | None = None
    shards: int = 1
