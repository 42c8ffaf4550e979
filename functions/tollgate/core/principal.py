"""The authenticated caller."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

KeyRole = Literal["inference", "management", "read"]
# `positive` admits a request while any balance is left, `covered` only if the balance covers the
# highest cost of the request.
Admission = Literal["positive", "covered"]


class Principal(Struct, frozen=True, kw_only=True):
    """A key that exists, is enabled and has not expired."""

    key_id: str
    workspace_id: str
    role: KeyRole
    label: str
    tier: str | None = None
    models: tuple[str, ...] | None = None
    """Globs of the model slugs that the key may use; None allows all."""
    shards: int = 1
    """The number of wallet items over which the workspace's money is spread."""
    labels: Mapping[str, str] = field(default_factory=dict)
    admission: Admission | None = None
    """None if the workspace leaves it to the catalog."""
    old_secret: bool = False
    """True if the caller used the secret from before the key's last rotation."""
    content_days: int | None = None
    """Days for which requests and answers are kept; None keeps none."""
    response_days: int | None = None
    """Days for which responses are stored for later requests; None stores none."""
