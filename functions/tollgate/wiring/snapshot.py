"""The snapshot hooks of the streaming function (SnapStart)."""

from msgspec import Struct

from tollgate.core.entropy import reseed
from tollgate.settings import Settings
from tollgate.wiring.aws import rotating_credentials
from tollgate.wiring.generation import Upstream
from tollgate.wiring.stores import Stores


class FunctionSnapshot(Struct, frozen=True):
    """Implements `lambda_runtime.loop.Snapshot` for the streaming function."""

    settings: Settings
    stores: Stores
    upstream: Upstream

    async def before(self) -> None:
        await self.stores.aclose()
        await self.upstream.aclose()

    async def after(self) -> None:
        reseed()
        credentials = rotating_credentials(self.settings)
        if credentials is not None:
            credentials.forget()
            await credentials.renew()
