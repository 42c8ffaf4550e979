"""Who is calling."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

KeyRole = Literal["inference", "management"]
# `positive` admits whoever has anything left, `covered` only what the balance covers whole.
Admission = Literal["positive", "covered"]


class Principal(Struct, frozen=True, kw_only=True):
    """A key that was found, enabled and not expired.

    `models` are globs of model slugs the key may use; None allows all.
    `shards` is how many wallet items the workspace's money is spread over. `admission` is None
    where the workspace leaves it to the catalog. `old_secret` says that the key was rotated and
    is still used with the secret from before. `content_days` is for how long what is asked and
    answered is kept; None: not at all.
    """

    key_id: str
    workspace_id: str
    role: KeyRole
    label: str
    tier: str | None = None
    models: tuple[str, ...] | None = None
    shards: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)
    admission: Admission | None = None
    old_secret: bool = False
    content_days: int | None = None
