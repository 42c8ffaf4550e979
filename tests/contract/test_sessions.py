"""Sessions of members: their role, their listing, and how fast an end reaches everybody."""

import pytest
from msgspec.structs import replace

from tests.contract.test_people import ACME, ANA, actions_of, add_member
from tests.stores import TESTER, DynamoStores, dynamo_stores
from tollgate.core.errors import AccessError, ErrorCode, RequestError
from tollgate.stores.aws.items import SessionItem
from tollgate.stores.aws.tables import get_item, secret_key
from tollgate.stores.keys.secret import secret_hash
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.people import SESSION_S_MAX, OpenedSession
from tollgate.stores.rules.level_settings import MemberSettings


async def test_a_session_has_the_role_of_its_member_and_ends(dynamo: DynamoStores) -> None:
    await add_member(dynamo, role="admin")
    first = await dynamo.sessions.open(ACME, ANA, lifetime_s=60, by=TESTER)
    second = await dynamo.sessions.open(ACME, ANA, lifetime_s=90_000, by=TESTER)
    assert first is not None
    assert second is not None
    # Sign-ins leave one key, by which all of them spend.
    assert first.key_id == second.key_id
    assert [name.label for name in await dynamo.keys.names(ACME)] == [f"session:{ANA}"]
    assert second.expires_s == int(dynamo.clock.now) + SESSION_S_MAX

    principal = await dynamo.keys.authenticate(first.secret)
    assert (principal.role, principal.session, principal.member_id) == ("admin", True, ANA)
    assert principal.key_id == first.key_id

    demote = await dynamo.members.change(
        ACME, ANA, lambda it: replace(it, role="viewer"), by=TESTER
    )
    assert demote is not None
    dynamo.clock.now += 5.0
    assert (await dynamo.keys.authenticate(first.secret)).role == "viewer"

    assert await dynamo.sessions.close(second.secret, by=TESTER) is True
    assert await dynamo.sessions.close(second.secret, by=TESTER) is False
    with pytest.raises(AccessError):
        await dynamo.keys.authenticate(second.secret)
    dynamo.clock.now += 55.0
    with pytest.raises(AccessError):
        await dynamo.keys.authenticate(first.secret)
    assert await actions_of(dynamo) == [
        ("key.create", first.key_id),
        ("member.change", ANA),
        ("member.create", ANA),
        ("session.close", ANA),
        ("session.open", ANA),
        ("session.open", ANA),
    ]


async def _refused(dynamo: DynamoStores, secret: str) -> bool:
    """Whether another process refuses a secret that it accepted five seconds ago."""
    try:
        await dynamo.keys.authenticate(secret)
    except AccessError as refused:
        return refused.code is ErrorCode.INVALID_API_KEY
    return False


async def test_c60_an_ended_session_is_refused_with_every_secret_that_it_had(
    dynamo: DynamoStores,
) -> None:
    await add_member(dynamo)
    other = dynamo_stores(dynamo.client, dynamo.tables, dynamo.clock)

    async def open_one() -> OpenedSession:
        dynamo.clock.now += 1.0
        opened = await dynamo.sessions.open(ACME, ANA, lifetime_s=600, renewable_s=900, by=TESTER)
        assert opened is not None
        return opened

    first, second = await open_one(), await open_one()
    dynamo.clock.now += 60.0
    renewed = await dynamo.sessions.renew(
        ACME, ANA, first.id, lifetime_s=600, renewable_s=900, by=TESTER
    )
    assert renewed is not None
    assert renewed.id == first.id
    listed = await dynamo.sessions.list(ACME, ANA)
    now_s = int(dynamo.clock.now)
    assert [(it.id, it.renewed_s, it.expires_s) for it in listed.found] == [
        (first.id, now_s, now_s + 900),
        (second.id, now_s - 60, now_s + 840),
    ]
    page = await dynamo.sessions.list(ACME, ANA, limit=1)
    rest = await dynamo.sessions.list(ACME, ANA, after=page.next)
    assert [it.id for it in (*page.found, *rest.found)] == [first.id, second.id]
    secrets = (first.secret, renewed.secret, second.secret)
    assert not any([await _refused(other, secret) for secret in secrets])

    assert await dynamo.sessions.end(ACME, ANA, first.id, by=TESTER) is True
    assert await dynamo.sessions.end(ACME, ANA, first.id, by=TESTER) is False
    dynamo.clock.now += 5.0
    assert [await _refused(other, secret) for secret in secrets] == [True, True, False]
    again = await dynamo.sessions.renew(
        ACME, ANA, first.id, lifetime_s=600, renewable_s=900, by=TESTER
    )
    assert again is None
    # Signing out with a secret ends the session of the secret.
    assert await dynamo.sessions.close(second.secret, by=TESTER) is True
    assert (await dynamo.sessions.list(ACME, ANA)).found == ()


async def test_c60_all_sessions_of_a_member_end_at_once_and_the_keys_stay(
    dynamo: DynamoStores,
) -> None:
    await add_member(dynamo)
    await add_member(dynamo, "bo")
    new = NewKey(workspace_id=ACME, label="a", member_id=ANA)
    key = (await dynamo.keys.create(new, by=TESTER)).secret
    opened = [
        await dynamo.sessions.open(ACME, name, lifetime_s=600, renewable_s=900, by=TESTER)
        for name in (ANA, ANA, "bo")
    ]
    first, second, others = [it for it in opened if it is not None]
    assert await dynamo.sessions.end_all(ACME, ANA, by=TESTER) is True
    assert await dynamo.sessions.end_all(ACME, "nobody", by=TESTER) is False
    assert (await dynamo.sessions.list(ACME, ANA)).found == ()
    assert len((await dynamo.sessions.list(ACME, "bo")).found) == 1
    secrets = (first.secret, second.secret, others.secret, key)
    assert [await _refused(dynamo, it) for it in secrets] == [True, True, False, False]
    renewed = await dynamo.sessions.renew(
        ACME, ANA, first.id, lifetime_s=600, renewable_s=900, by=TESTER
    )
    assert renewed is None
    # The member may sign in again.
    fresh = await dynamo.sessions.open(ACME, ANA, lifetime_s=600, by=TESTER)
    assert fresh is not None
    assert not await _refused(dynamo, fresh.secret)
    assert ("session.close_all", ANA) in await actions_of(dynamo)


async def test_a_secret_from_before_sessions_were_listed_works_until_it_expires(
    dynamo: DynamoStores,
) -> None:
    await add_member(dynamo)
    opened = await dynamo.sessions.open(ACME, ANA, lifetime_s=600, by=TESTER)
    assert opened is not None
    row = await get_item(dynamo.client, dynamo.tables.core, secret_key(secret_hash(opened.secret)))
    assert row is not None
    old = {
        name: value
        for name, value in row.items()
        if name not in (SessionItem.SIGN_IN, SessionItem.ROUND)
    }
    await dynamo.client.call("PutItem", {"TableName": dynamo.tables.core, "Item": old})
    await dynamo.sessions.end(ACME, ANA, opened.id, by=TESTER)
    assert not await _refused(dynamo, opened.secret)
    assert await dynamo.sessions.end_all(ACME, ANA, by=TESTER) is True
    dynamo.clock.now += 5.0
    assert await _refused(dynamo, opened.secret)


async def test_a_disabled_session_key_refuses_every_session(dynamo: DynamoStores) -> None:
    await add_member(dynamo)
    session = await dynamo.sessions.open(ACME, ANA, lifetime_s=60, by=TESTER)
    assert session is not None
    await dynamo.keys.change(ACME, session.key_id, lambda it: replace(it, disabled=True), by=TESTER)
    with pytest.raises(AccessError):
        await dynamo.keys.authenticate(session.secret)


async def test_a_session_needs_a_member_and_a_lifetime(dynamo: DynamoStores) -> None:
    assert await dynamo.sessions.open(ACME, "nobody", lifetime_s=60, by=TESTER) is None
    assert await dynamo.sessions.open(ACME, "no#id", lifetime_s=60, by=TESTER) is None
    await add_member(dynamo)
    with pytest.raises(RequestError) as refused:
        await dynamo.sessions.open(ACME, ANA, lifetime_s=0, by=TESTER)
    assert refused.value.param == "lifetime_s"
    new = NewKey(workspace_id=ACME, label="a")
    secret = (await dynamo.keys.create(new, by=TESTER)).secret
    # A key is not signed out of.
    assert await dynamo.sessions.close(secret, by=TESTER) is False
    assert (await dynamo.keys.authenticate(secret)).role == "inference"


async def test_c60_a_disabled_member_is_refused_by_another_process_within_five_seconds(
    dynamo: DynamoStores,
) -> None:
    await add_member(dynamo)
    new = NewKey(workspace_id=ACME, label="a", member_id=ANA)
    key = (await dynamo.keys.create(new, by=TESTER)).secret
    session = await dynamo.sessions.open(ACME, ANA, lifetime_s=600, renewable_s=900, by=TESTER)
    assert session is not None
    other = dynamo_stores(dynamo.client, dynamo.tables, dynamo.clock)
    for disabled in (True, False):
        changed = await dynamo.members.change(
            ACME, ANA, lambda it, off=disabled: replace(it, disabled=off), by=TESTER
        )
        assert changed is not None
        assert changed.disabled is disabled
        dynamo.clock.now += 5.0
        assert [await _refused(other, it) for it in (key, session.secret)] == [disabled, disabled]
        fresh = await dynamo.sessions.renew(
            ACME, ANA, session.id, lifetime_s=600, renewable_s=900, by=TESTER
        )
        assert (fresh is None) is disabled


@pytest.mark.parametrize("way", ["disable", "remove", "demote"])
async def test_a_disabled_owner_is_no_owner_who_stays(dynamo: DynamoStores, way: str) -> None:
    for name in ("ana", "bo"):
        await add_member(dynamo, name, role="owner")
    await dynamo.members.change(ACME, "bo", lambda it: replace(it, disabled=True), by=TESTER)
    settings = MemberSettings(role="owner", disabled=True) if way == "disable" else MemberSettings()
    leaving = (
        dynamo.members.remove(ACME, "ana", by=TESTER)
        if way == "remove"
        else dynamo.members.change(ACME, "ana", lambda _: settings, by=TESTER)
    )
    with pytest.raises(RequestError, match="must have an owner"):
        await leaving
