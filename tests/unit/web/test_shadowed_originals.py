"""The shadow that the record of an original names.

Keeps C102.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.memory.batches import MemoryJobStore
from tests.shadows import open_shadowed
from tests.unit.web.test_api_app import Api
from tollgate.core.shadows import SHADOW_PREFIX, ShadowRun
from tollgate.stores.ports.batches import BatchPlace


@pytest.mark.parametrize("own", [False, True])
async def test_c102_an_original_names_its_shadow_once_it_is_settled(own: bool) -> None:
    found = await open_shadowed()
    if own:
        found.shadow_by(workspace="acme", key_id=found.home.principal.key_id)
    await found.ask()
    [original] = found.records("acme")
    call = Api(found.home, "", "", changes={"shadows": found.store})

    async def shadow_of_original() -> Any:
        path = f"/v1/generation?id={original.id}"
        return (await call("GET", path, key=found.home.secret)).json["data"]["shadowed_by"]

    assert await shadow_of_original() is None
    await found.work()
    [shadow] = [each for each in (*found.records("acme"), *found.shadows) if each.shadow]
    expected = {"generation_id": f"gen-{shadow.id}", "is_readable": own}
    assert await shadow_of_original() == expected
    # The run is deleted after a day.
    call.changes["shadows"] = MemoryJobStore[ShadowRun]()
    assert await shadow_of_original() is None


async def test_c102_an_original_does_not_name_the_shadow_of_another_request() -> None:
    found = await open_shadowed()
    await found.ask()
    await found.ask()
    await found.work()
    first, second = found.records("acme")
    other = await found.store.get(BatchPlace("acme", SHADOW_PREFIX + second.id))
    assert other is not None
    place = BatchPlace("acme", SHADOW_PREFIX + first.id)
    await found.store.change(place, lambda run: replace(run, shadow_id=other.shadow_id))
    call = Api(found.home, "", "", changes={"shadows": found.store})
    reply = await call("GET", f"/v1/generation?id={first.id}", key=found.home.secret)
    assert (reply.status, reply.json["data"]["shadowed_by"]) == (200, None)


async def test_c102_an_original_names_no_shadow_that_was_refused() -> None:
    found = await open_shadowed(funds_nano_usd=0)
    await found.ask()
    await found.work()
    [original] = found.records("acme")
    call = Api(found.home, "", "", changes={"shadows": found.store})
    reply = await call("GET", f"/v1/generation?id={original.id}", key=found.home.secret)
    assert (reply.status, reply.json["data"]["shadowed_by"]) == (200, None)
