"""The address of a key's last use is stored only where the key says so, and goes with it.

Keeps C60.
"""

from msgspec.structs import replace

from tests.stores import TESTER, DynamoStores, MemoryStores
from tollgate.stores.ports.administration import KeySummary, NewKey

AnyStores = MemoryStores | DynamoStores
KEY = NewKey(workspace_id="acme", label="test")


async def shown(stores: AnyStores, key_id: str) -> KeySummary:
    summary = await stores.keys.get("acme", key_id)
    assert summary is not None
    return summary


async def test_c60_an_address_is_stored_by_consent_and_every_ten_minutes(
    stores: AnyStores,
) -> None:
    created = await stores.keys.create(KEY, by=TESTER)
    key_id = created.summary.id

    async def use(address: str | None) -> str | None:
        principal = await stores.keys.authenticate(created.secret)
        await stores.keys.note_address(principal, address)
        return (await shown(stores, key_id)).last_address

    async def keep(value: str | None) -> None:
        await stores.keys.change(
            "acme", key_id, lambda it: replace(it, keep_address=value), by=TESTER
        )
        stores.clock.now += 6

    assert await use("192.0.2.1") is None
    await keep("last")
    assert await use(None) is None
    assert await use("192.0.2.2") == "192.0.2.2"
    assert (await shown(stores, key_id)).last_address_s == int(stores.clock.now)
    stores.clock.now += 590
    assert await use("192.0.2.3") == "192.0.2.2"
    stores.clock.now += 11
    assert await use("2001:db8::1") == "2001:db8::1"
    # The address goes when the key no longer keeps it.
    await keep(None)
    assert (await shown(stores, key_id)).last_address is None
    await keep("last")
    assert (await shown(stores, key_id)).last_address is None
