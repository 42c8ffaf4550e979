"""The snapshot hooks of the streaming function (SnapStart)."""

import os
import random
import ssl
from typing import Final

from msgspec import Struct

from tollgate.settings import Settings
from tollgate.wiring.aws import rotating_credentials
from tollgate.wiring.generation import Upstream
from tollgate.wiring.stores import Stores

_SEED_BYTES: Final = 32


class FunctionSnapshot(Struct, frozen=True):
    """Implements `lambda_runtime.loop.Snapshot` for the streaming function."""

    settings: Settings
    stores: Stores
    upstream: Upstream

    async def before(self) -> None:
        await self.stores.aclose()
        await self.upstream.aclose()

    async def after(self) -> None:
        # Copies of a snapshot share the random generators that libraries keep in memory. Ids and
        # secrets come from the kernel, which never gives two copies the same bytes. "Handling
        # uniqueness with Lambda SnapStart", AWS Lambda developer guide (2026-11-21)
        random.seed()
        ssl.RAND_add(os.urandom(_SEED_BYTES), _SEED_BYTES)
        credentials = rotating_credentials(self.settings)
        if credentials is not None:
            credentials.forget()
            await credentials.renew()
