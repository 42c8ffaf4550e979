"""The slices of levels in a fault test: made, and evened out again and again."""

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from tests.faults.checks import Findings
from tests.faulty_client import FaultyAwsJson, Killed
from tests.stores import DynamoStores
from tollgate.aws.failures import StoreError
from tollgate.core.errors import GatewayError
from tollgate.core.ids import IdSource
from tollgate.core.limits import AboveKey, LimitOwner
from tollgate.stores.aws.decoding import read_number
from tollgate.stores.aws.tables import get_item, level_row_key
from tollgate.stores.keys.rows import state_revision
from tollgate.stores.keys.slice_writes import Division, SliceWrites
from tollgate.stores.people.level_items import slices_of
from tollgate.stores.people.pending import READERS
from tollgate.stores.people.slices import LevelSlices
from tollgate.stores.rules.level_settings import state_settings
from tollgate.stores.rules.slices import SLICES_MAX

_WORKSPACE = "acme"
_CALLED_OFF = (GatewayError, StoreError, Killed)


async def divide(
    stores: DynamoStores,
    levels: Sequence[tuple[AboveKey, str]],
    findings: Findings,
    done: asyncio.Event,
) -> None:
    """Levels get slices, and then these are evened out again and again."""
    ids, clock = IdSource(stores.clock), stores.clock
    care = LevelSlices(stores.client, stores.tables, ids=ids, clock=clock)
    writes = SliceWrites(stores.client, stores.tables.ledger, ids=ids, clock=clock)
    for level, name in itertools.cycle(levels):
        if done.is_set() and not owed(stores, "divide"):
            return
        await asyncio.sleep(0.1)
        with suppress(*_CALLED_OFF):
            key = level_row_key(level, _WORKSPACE, name)
            row = await get_item(stores.client, stores.tables.core, key)
            assert row is not None
            owner = LimitOwner(level=level, id=name, workspace_id=_WORKSPACE)
            slices = slices_of(row)
            if slices < SLICES_MAX:
                # Whether it grew may stay unknown; what grew is seen by the checks.
                await care.grow(level, row, 1)
                continue
            division = Division(
                owner=owner,
                settings=state_settings(READERS[level](row)),
                revision=read_number(row, "rev"),
                slices_before=slices,
                slices=slices,
            )
            if done.is_set():
                # Slices are even now that nobody holds on them, so that only a change writes.
                first, *_ = await writes.read(owner, slices)
                division = replace(division, revision=state_revision(first) + 1, changes=True)
            findings.counts["divided"] += await writes.divide(division)


def owed(stores: DynamoStores, site: str) -> bool:
    """Return whether a site of this network has yet to meet some fault."""
    client = stores.client
    return isinstance(client, FaultyAwsJson) and bool(client.faults and client.faults.owed([site]))
