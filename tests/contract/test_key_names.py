"""Names of keys: unique in a workspace, also between writers at the same moment.

Keeps C60.
"""

import asyncio

import pytest
from msgspec.structs import replace

from tests.stores import TESTER, DynamoStores, MemoryStores, funded_key
from tollgate.aws.attributes import string
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.stores.aws.items import KeyNameItem, KeyPointerItem
from tollgate.stores.aws.tables import get_item, key_name_key, key_pointer_key
from tollgate.stores.ports.administration import CreatedKey, KeySummary, NewKey

AnyStores = MemoryStores | DynamoStores
KEY = NewKey(workspace_id="acme", label="ci", requests_per_minute=60_000, burst=1000)


async def rename(
    stores: AnyStores, key_id: str, label: str, **changes: object
) -> KeySummary | None:
    return await stores.keys.change(
        "acme", key_id, lambda settings: replace(settings, label=label, **changes), by=TESTER
    )


async def make(stores: AnyStores, label: str = "ci") -> str:
    return (await stores.keys.create(replace(KEY, label=label), by=TESTER)).summary.id


async def labels(stores: AnyStores) -> list[str]:
    return [key.label for key in (await stores.keys.list("acme")).found]


async def test_c60_a_second_key_of_a_name_is_refused(stores: AnyStores) -> None:
    first = await make(stores)
    with pytest.raises(RequestError) as refused:
        await make(stores)

    assert (refused.value.code, refused.value.param) == (ErrorCode.INVALID_REQUEST, "name")
    assert f"named ci exists already: {first}" in refused.value.message
    assert await labels(stores) == ["ci"]
    await stores.keys.create(replace(KEY, workspace_id="other"), by=TESTER)


async def test_c60_a_key_takes_no_name_that_another_has_and_keeps_all_its_settings(
    stores: AnyStores,
) -> None:
    await make(stores)
    second = await make(stores, "deploy")
    with pytest.raises(RequestError):
        await rename(stores, second, "ci", concurrency=7)

    kept = await stores.keys.get("acme", second)
    assert kept is not None
    assert (kept.label, kept.concurrency) == ("deploy", None)
    same = await rename(stores, second, "deploy", concurrency=7)
    assert same is not None
    assert same.concurrency == 7


async def test_c60_a_renamed_and_a_deleted_key_free_their_names(stores: AnyStores) -> None:
    first = await make(stores)
    renamed = await rename(stores, first, "old ci", concurrency=7)
    assert renamed is not None
    assert (renamed.label, renamed.concurrency) == ("old ci", 7)
    second = await make(stores)
    assert await stores.keys.delete("acme", second, by=TESTER) is True
    third = await make(stores)
    assert await stores.keys.delete("acme", first, by=TESTER) is True
    await rename(stores, third, "old ci")

    names = {name.key_id: (name.label, name.deleted) for name in await stores.keys.names("acme")}
    assert names == {
        first: ("old ci", True),
        second: ("ci", True),
        third: ("old ci", False),
    }


async def test_c60_a_key_that_still_runs_keeps_its_name(stores: AnyStores) -> None:
    _, principal = await funded_key(stores, 100, KEY)
    await stores.ledger.hold(principal, 10)
    assert await stores.keys.delete("acme", principal.key_id, by=TESTER) is False
    with pytest.raises(RequestError):
        await make(stores)


async def test_c60_of_writers_at_the_same_moment_one_gets_the_name(honest: DynamoStores) -> None:
    other = await make(honest, "other")
    outcomes = await asyncio.gather(
        *(honest.keys.create(KEY, by=TESTER) for _ in range(6)),
        rename(honest, other, "ci"),
        return_exceptions=True,
    )

    refused = [it for it in outcomes if isinstance(it, RequestError)]
    assert sum(isinstance(it, CreatedKey | KeySummary) for it in outcomes) == 1
    assert len(refused) == 6
    assert (await labels(honest)).count("ci") == 1


async def test_c60_keys_from_before_names_were_unique_are_read_and_renamed(
    honest: DynamoStores,
) -> None:
    first, second = await make(honest), await make(honest, "twin")
    await _write_as_before(honest, second, "ci", leaves="twin")
    assert await labels(honest) == ["ci", "ci"]
    with pytest.raises(RequestError):
        await make(honest)

    # A row that the earlier version left behind keeps nobody from the name.
    third = await make(honest, "twin")
    await rename(honest, first, "a")
    await rename(honest, second, "b")
    assert await make(honest) not in (first, second, third)
    assert sorted(await labels(honest)) == ["a", "b", "ci", "twin"]


async def _write_as_before(stores: DynamoStores, key_id: str, label: str, *, leaves: str) -> None:
    """Rename a key as the version did that knew of no rows of names."""
    await stores.client.call(
        "UpdateItem",
        {
            "TableName": stores.tables.core,
            "Key": key_pointer_key("acme", key_id),
            "UpdateExpression": "SET #label = :label",
            "ExpressionAttributeNames": {"#label": KeyPointerItem.LABEL},
            "ExpressionAttributeValues": {":label": string(label)},
        },
    )
    row = await get_item(stores.client, stores.tables.core, key_name_key("acme", leaves))
    assert row is not None
    assert row[KeyNameItem.KEY] == string(key_id)
