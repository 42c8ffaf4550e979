"""Publications: catalogs that never change, and one pointer that two cannot move at once.

Keeps C54, C90.
"""

import asyncio

import pytest
from msgspec.structs import replace
from typing_extensions import override

from tests.stores import DynamoStores, HandClock, an_entry, client_of, funded_key
from tests.unit.routing.catalogs import endpoint, model, routing
from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsJson
from tollgate.aws.failures import StoreUnavailable
from tollgate.aws.objects import FolderObjects, ObjectStore
from tollgate.core.errors import ErrorCode, LedgerError, RequestError
from tollgate.core.routing.publication import Signature, publish_canary, publish_to_all
from tollgate.routing.file.compile import canonical_json
from tollgate.routing.planning.catalog import Catalog
from tollgate.stores.aws.tables import PUBLICATION_KEY, get_item
from tollgate.stores.routing.publications import PublicationStore

FIRST, SECOND = b'{"first": 1}', b'{"second": 2}'
SIGNED = Signature(by="arn:aws:iam::1:user/somebody", at_s=1_795_000_000, commit="c0ffee")


class LosingReply(AwsJson):
    """A client whose network loses the reply to the first transaction."""

    lost = False

    @override
    async def post(self, operation: str, body: bytes) -> tuple[int, bytes]:
        reply = await super().post(operation, body)
        if operation == "TransactWriteItems" and not self.lost:
            self.lost = True
            raise StoreUnavailable("injected", maybe_applied=True)
        return reply


@pytest.fixture
def publications(dynamo: DynamoStores, objects: ObjectStore) -> PublicationStore:
    return PublicationStore(dynamo.client, dynamo.tables.core, objects, clock=dynamo.clock)


async def test_c54_what_is_published_is_read_back_whole(publications: PublicationStore) -> None:
    assert await publications.publication() is None
    live = publish_to_all(None, await publications.keep(FIRST), SIGNED)
    await publications.move(live, an_entry())
    tried = publish_canary(live, await publications.keep(SECOND), 5, SIGNED)
    await publications.move(tried, an_entry())

    again = PublicationStore(publications._client, publications._table, None, clock=HandClock())
    assert await again.publication() == tried
    assert await again.history() == [tried, live]
    assert await publications.catalog(live.live) == FIRST


async def test_c54_of_two_who_publish_at_once_one_is_told(
    honest: DynamoStores, objects: ObjectStore
) -> None:
    publications = PublicationStore(honest.client, honest.tables.core, objects, clock=honest.clock)
    sha = await publications.keep(FIRST)
    moves = [
        publications.move(
            publish_to_all(None, sha, replace(SIGNED, by=f"user {number}")), an_entry()
        )
        for number in range(8)
    ]
    results = await asyncio.gather(*moves, return_exceptions=True)
    refused = [result for result in results if isinstance(result, RequestError)]
    assert len(refused) == 7
    assert {each.code for each in refused} == {ErrorCode.IDEMPOTENCY_CONFLICT}
    assert len(await publications.history()) == 1


async def test_c90_a_publication_whose_reply_was_lost_is_there_once(
    honest_url: str, honest: DynamoStores, objects: ObjectStore
) -> None:
    network = client_of(LosingReply, honest_url, clock=honest.clock, timeout_s=10.0)
    publications = PublicationStore(network, honest.tables.core, objects, clock=honest.clock)
    await publications.move(
        publish_to_all(None, await publications.keep(FIRST), SIGNED), an_entry()
    )
    assert len(await publications.history()) == 1
    assert network.lost
    await network.close()


async def test_c54_a_later_publication_needs_the_one_before(
    publications: PublicationStore,
) -> None:
    first = publish_to_all(None, await publications.keep(FIRST), SIGNED)
    await publications.move(first, an_entry())
    second = publish_to_all(first, await publications.keep(SECOND), SIGNED)
    await publications.move(second, an_entry())
    with pytest.raises(RequestError):
        await publications.move(publish_to_all(first, first.live, SIGNED), an_entry())
    assert [each.revision for each in await publications.history()] == [2, 1]


async def test_c54_the_pointer_comes_along_with_a_key_at_no_call_more(
    dynamo: DynamoStores, publications: PublicationStore
) -> None:
    secret, _ = await funded_key(dynamo, 1)
    live = publish_to_all(None, await publications.keep(FIRST), SIGNED)
    await publications.move(live, an_entry())
    await dynamo.clock.sleep(5)  # until the key is read again
    await dynamo.keys.authenticate(secret)
    assert await dynamo.publications.publication() == live
    item = await get_item(dynamo.client, dynamo.tables.core, PUBLICATION_KEY)
    assert item is not None


async def test_c54_a_pointer_is_five_seconds_old_at_most(
    dynamo: DynamoStores, publications: PublicationStore
) -> None:
    assert await publications.publication() is None
    other = PublicationStore(dynamo.client, dynamo.tables.core, None, clock=dynamo.clock)
    await other.move(publish_to_all(None, "f" * 64, SIGNED), an_entry())
    await dynamo.clock.sleep(4.9)
    assert await publications.publication() is None
    await dynamo.clock.sleep(0.1)
    assert await publications.publication() is not None


async def test_c54_a_damaged_or_missing_catalog_is_never_handed_out(
    dynamo: DynamoStores, tmp_path: object
) -> None:
    folder = FolderObjects(tmp_path)  # type: ignore[arg-type]
    store = PublicationStore(dynamo.client, dynamo.tables.core, folder, clock=dynamo.clock)
    sha = await store.keep(FIRST)
    await folder.put(f"catalogs/{sha}.json", SECOND)
    with pytest.raises(LedgerError, match="damaged"):
        await store.catalog(sha)
    with pytest.raises(LedgerError, match="missing"):
        await store.catalog("0" * 64)


@pytest.mark.parametrize(
    "damage",
    [{"rev": string("one")}, {"live": number(1)}, {"pct": {"M": {}}}],
    ids=["no number", "no text", "another shape"],
)
async def test_c54_a_pointer_that_makes_no_sense_keeps_nobody_out(
    dynamo: DynamoStores, publications: PublicationStore, damage: Item
) -> None:
    secret, principal = await funded_key(dynamo, 1)
    await publications.move(
        publish_to_all(None, await publications.keep(FIRST), SIGNED), an_entry()
    )
    item = await get_item(dynamo.client, dynamo.tables.core, PUBLICATION_KEY)
    assert item is not None
    put = {"TableName": dynamo.tables.core, "Item": {**item, **damage}}
    await dynamo.client.call("PutItem", put)
    await dynamo.clock.sleep(5)

    assert (await dynamo.keys.authenticate(secret)).key_id == principal.key_id
    with pytest.raises(LedgerError, match="item CATALOG P"):
        await dynamo.publications.publication()


async def test_c54_a_catalog_of_300_models_is_published_and_served(
    publications: PublicationStore,
) -> None:
    models = {f"acme/model-{number}": model(endpoint("near", "x")) for number in range(300)}
    content = canonical_json(routing(models=models, aliases={}, routes={}))
    kept = await publications.catalog(await publications.keep(content))
    assert len(Catalog.from_json(kept).models) == 300
