"""Playground secrets in DynamoDB: how fast the end of their opener reaches every process.

Keeps C60, C90.
"""

from msgspec.structs import replace

from tests.contract.test_people import ACME, ANA, actions_of, add_member
from tests.stores import TESTER, DynamoStores, dynamo_stores
from tollgate.aws.attributes import number
from tollgate.core.errors import AccessError, ErrorCode
from tollgate.core.principal import PLAYGROUND
from tollgate.stores.aws.items import SecretItem
from tollgate.stores.aws.tables import get_item, secret_key
from tollgate.stores.keys.secret import secret_hash
from tollgate.stores.people.playground import PLAYGROUND_S
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.people import SESSION_S_MAX


async def _refused(dynamo: DynamoStores, secret: str) -> bool:
    try:
        await dynamo.keys.authenticate(secret)
    except AccessError as refused:
        return refused.code is ErrorCode.INVALID_API_KEY
    return False


async def test_c60_a_playground_secret_ends_within_five_seconds_of_its_session(
    dynamo: DynamoStores,
) -> None:
    await add_member(dynamo, role="developer")
    session = await dynamo.sessions.open(ACME, ANA, lifetime_s=SESSION_S_MAX, by=TESTER)
    assert session is not None
    member = await dynamo.keys.authenticate(session.secret)
    opened = await dynamo.playgrounds.open(session.secret, member, by=TESTER)
    assert opened.expires_s == int(dynamo.clock.now) + PLAYGROUND_S
    other = dynamo_stores(dynamo.client, dynamo.tables, dynamo.clock)
    await other.keys.authenticate(session.secret)
    assert await dynamo.sessions.close(session.secret, by=TESTER)
    # The other process still has the session, which it read before the end.
    dynamo.clock.now += 4.0
    principal = await other.keys.authenticate(opened.secret)
    assert principal.role == PLAYGROUND
    assert (principal.key_id, principal.levels) == (member.key_id, member.levels)
    dynamo.clock.now += 1.0
    assert await _refused(other, opened.secret)
    assert ("playground.open", member.key_id) in await actions_of(dynamo)


async def test_a_playground_secret_ends_when_it_is_closed_when_late_and_with_its_key(
    dynamo: DynamoStores,
) -> None:
    created = await dynamo.keys.create(
        NewKey(workspace_id=ACME, label="a", role="management"), by=TESTER
    )
    manager = await dynamo.keys.authenticate(created.secret)
    closed, late = [
        await dynamo.playgrounds.open(created.secret, manager, by=TESTER) for _ in range(2)
    ]
    assert not await _refused(dynamo, closed.secret)
    await dynamo.playgrounds.close(closed.secret)
    assert await _refused(dynamo, closed.secret)
    row = await get_item(dynamo.client, dynamo.tables.core, secret_key(secret_hash(late.secret)))
    # An earlier release takes the item for that of a disabled key.
    assert row is not None
    assert row[SecretItem.ENABLED] == number(0)
    dynamo.clock.now = late.expires_s - 1.0
    assert not await _refused(dynamo, late.secret)
    dynamo.clock.now += 1.0
    # The key itself is good.
    assert await _refused(dynamo, late.secret)
    left = await dynamo.playgrounds.open(created.secret, manager, by=TESTER)
    assert not await _refused(dynamo, left.secret)
    await dynamo.keys.change(ACME, manager.key_id, lambda it: replace(it, disabled=True), by=TESTER)
    dynamo.clock.now += 5.0
    assert await _refused(dynamo, left.secret)
