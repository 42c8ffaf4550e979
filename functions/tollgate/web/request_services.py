"""What a request meets before it is known whose it is, and what it is given to then."""

from typing import Protocol

from msgspec import Struct

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.engine.gateway import Gateway, Journal
from tollgate.ingress.base import Ingress
from tollgate.stores.base import KeyDirectory


class RequestServices(Struct, frozen=True, kw_only=True):
    """What every request meets, whichever catalog serves it."""

    keys: KeyDirectory
    chat_completions: Ingress
    clock: Clock
    ids: IdSource
    journal: Journal


class Gateways(Protocol):
    """The gateways of the catalogs that are served."""

    async def for_key(self, key_id: str) -> Gateway:
        """What serves a key, from the start of a request to its end."""

    async def settled(self) -> None:
        """Wait for what goes on beside requests; called when a reply has left."""
