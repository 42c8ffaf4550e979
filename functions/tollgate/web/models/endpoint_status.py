"""The status of endpoints, which model lists and explanations show: cooldowns, speeds, faults of
keys.
"""

import asyncio
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TypedDict

from msgspec import Struct

from tollgate.core.routing.endpoint_status import KeyFault, KeyNote, Speed, average_speed
from tollgate.providers.ports.base import Target
from tollgate.routing.planning.catalog import Catalog
from tollgate.web.services import Services
from tollgate.web.shapes import moment


class KeyFields(TypedDict):
    """The fields that show the fault of an endpoint's key."""

    key: KeyFault | None
    key_seen_at: datetime | None


class EndpointStatus(Struct, frozen=True, kw_only=True):
    """The status of some endpoints, by their ids."""

    read_s: float = 0.0
    """Unix second of the read."""
    resting: Mapping[str, float] = {}
    """Endpoints in cooldown, with the Unix second from which one request may probe each."""
    speeds: Mapping[str, Speed] = {}
    keys: Mapping[str, KeyNote] = {}
    """Faults of keys that requests found."""
    usable: Mapping[str, bool] = {}
    """For providers, whether this process has their key; empty in functions that call no
    providers.
    """
    batch_lacks: Mapping[str, str] = {}
    """The missing part of this deployment for batches, by provider."""

    def is_ready(self, target: Target) -> bool:
        """Return False for an endpoint in cooldown, or whose key has a fault."""
        return target.endpoint_id not in self.resting and self.key_fields(target)["key"] is None

    def key_fields(self, target: Target) -> KeyFields:
        """Return the fault of an endpoint's key, and the time of the request that found it."""
        known, note = self.usable.get(target.provider), self.keys.get(target.endpoint_id)
        if known is False:
            return KeyFields(key="absent", key_seen_at=None)
        if note is None or (known and note.fault == "absent"):
            return KeyFields(key=None, key_seen_at=None)
        return KeyFields(key=note.fault, key_seen_at=moment(note.seen_s))


async def find_status(
    services: Services,
    catalog: Catalog,
    targets: Collection[Target],
    *,
    prompt_tokens: int | None = None,
) -> EndpointStatus:
    """Return the status of endpoints, which all instances share.

    Speeds are those for prompts of this size; without a size, averages over all sizes.
    """
    ids = {target.endpoint_id for target in targets}
    rows = {target.provider: catalog.providers[target.provider] for target in targets}
    policy = catalog.defaults.speeds.policy
    measured = {
        name: policy.measured_ids(name)
        if prompt_tokens is None
        else (policy.measured_id(name, prompt_tokens),)
        for name in ids
    }
    resting, speeds = await asyncio.gather(
        services.cooldowns.find_resting(ids, catalog.defaults.cooldown.policy),
        services.cooldowns.find_speeds({each for names in measured.values() for each in names}),
    )
    averages = {
        name: average_speed([speeds[each] for each in names if each in speeds])
        for name, names in measured.items()
    }
    # Faults of keys need no further read, because they are in the same items as cooldowns.
    keys = await services.cooldowns.find_key_notes(ids)
    usable: dict[str, bool] = {}
    if services.find_missing_key is not None:
        places = await asyncio.gather(*map(services.find_missing_key, rows.values()))
        usable = {slug: place is None for slug, place in zip(rows, places, strict=True)}
    return EndpointStatus(
        read_s=services.clock.now_s(),
        resting=resting,
        speeds={name: speed for name, speed in averages.items() if speed},
        keys=keys,
        usable=usable,
        batch_lacks={
            slug: lack
            for slug, row in rows.items()
            if row.batch and (lack := row.batch.find_lack(row.region, services.job_region))
        },
    )
