"""What the streaming function does about being copied into many environments (SnapStart)."""

import os
import random
import ssl
from dataclasses import dataclass
from typing import Final

from tollgate.settings import Settings
from tollgate.wiring.aws import rotating_credentials
from tollgate.wiring.generation import Upstream
from tollgate.wiring.stores import Stores

_SEED_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class FunctionSnapshot:
    """Implements `lambda_runtime.loop.Snapshot` for the streaming function.

    Ids, secrets and draws of ours come from the kernel, which every copy shares with nobody; the
    generators that libraries keep in memory do not ("Handling uniqueness with Lambda SnapStart",
    2026-11-21).
    """

    settings: Settings
    stores: Stores
    upstream: Upstream

    async def before(self) -> None:
        await self.stores.aclose()
        await self.upstream.aclose()

    async def after(self) -> None:
        random.seed()
        ssl.RAND_add(os.urandom(_SEED_BYTES), _SEED_BYTES)
        credentials = rotating_credentials(self.settings)
        if credentials is not None:
            credentials.forget()
            await credentials.renew()
