"""The accounts that pay for the requests of the benchmark."""

from typing import Final

from msgspec.structs import replace

from tollgate.core.clock import Clock
from tollgate.core.records.audit import Actor
from tollgate.settings import Settings
from tollgate.stores.ports.administration import NewKey
from tollgate.wiring.administration import wire_administration
from tollgate.wiring.stores import Stores

GRANT_NANO_USD = 10**15
WORKSPACES: Final = ("bench", "bench2")
BUSY_KEY = NewKey(
    workspace_id=WORKSPACES[0], label="bench", requests_per_minute=1_000_000, burst=100_000
)

_BENCH: Final = Actor(kind="process", id="bench")


async def prepare_account(
    settings: Settings, stores: Stores, clock: Clock, workspace_id: str = BUSY_KEY.workspace_id
) -> str:
    """Create the tables and a funded key, and return the key's secret."""
    await stores.create_tables()
    administration = wire_administration(settings, stores, clock)
    await administration.credits.grant(workspace_id, "first", GRANT_NANO_USD, "bench", by=_BENCH)
    new = replace(BUSY_KEY, workspace_id=workspace_id)
    return (await administration.keys.create(new, by=_BENCH)).secret
