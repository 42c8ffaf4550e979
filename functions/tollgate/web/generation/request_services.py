"""Dependencies of a request: those needed before authentication, and the gateway after it."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.engine.gateway import Gateway, Journal
from tollgate.ingress.base import Ingress
from tollgate.stores.ports.base import KeyDirectory


class RequestServices(Struct, frozen=True, kw_only=True):
    """Dependencies that are the same for every request and catalog."""

    keys: KeyDirectory
    ingresses: Mapping[str, Ingress]
    """The ingress of each row of `ingress.formats`, by name."""
    clock: Clock
    ids: IdSource
    journal: Journal


class Gateways(Protocol):
    """Source of the gateway that serves a key."""

    async def for_key(self, key_id: str) -> Gateway:
        """Return the gateway that serves a request of this key from start to end."""

    async def finish_loading(self) -> None:
        """Wait until background loads have ended; called after each reply."""
