"""Teams, members and sessions: what belongs to what, and how fast a removal reaches everybody."""

import asyncio
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from tests.stores import TESTER, DynamoStores, HandClock, dynamo_stores
from tollgate.aws.attributes import number
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsReply
from tollgate.core.errors import AccessError, ErrorCode, RequestError
from tollgate.core.limits import AboveKey
from tollgate.core.records.audit import AuditFilter
from tollgate.stores.aws.items import LevelItem
from tollgate.stores.aws.tables import level_row_key
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings

ACME = "acme"
ANA = "ana@example.com"


async def actions_of(stores: DynamoStores) -> list[tuple[str, str]]:
    wanted = AuditFilter(since_s=0, until_s=int(stores.clock.now) + 1)
    page = await stores.audit_log.page(ACME, wanted, limit=100)
    # The clock stands, so that the order of entries is chance.
    return sorted((entry.action, entry.target) for entry in page.found)


async def _team(stores: DynamoStores, name: str = "search", **settings: object) -> None:
    made = await stores.teams.create(ACME, name, LevelSettings(**settings), by=TESTER)  # type: ignore[arg-type]
    assert made is not None


async def add_member(stores: DynamoStores, name: str = ANA, **settings: object) -> None:
    made = await stores.members.create(ACME, name, MemberSettings(**settings), by=TESTER)  # type: ignore[arg-type]
    assert made is not None


async def test_a_team_is_made_once_and_every_change_has_an_entry(dynamo: DynamoStores) -> None:
    await _team(dynamo, limits_nano_usd={"day": 5}, display_name="Search")
    assert await dynamo.teams.create(ACME, "search", LevelSettings(), by=TESTER) is None

    changed = await dynamo.teams.change(
        ACME, "search", lambda it: replace(it, limits_nano_usd={"day": 7}), by=TESTER
    )
    assert changed is not None
    assert changed.limits_nano_usd == changed.spending.remaining_nano_usd == {"day": 7}
    # The same again is no change.
    await dynamo.teams.change(ACME, "search", lambda it: it, by=TESTER)
    assert await dynamo.teams.delete(ACME, "search", by=TESTER) is not None
    assert await dynamo.teams.delete(ACME, "search", by=TESTER) is None

    gone = await dynamo.teams.get(ACME, "search")
    assert gone is not None
    assert gone.deleted_s == int(dynamo.clock.now)
    assert await dynamo.teams.create(ACME, "search", LevelSettings(), by=TESTER) is None
    assert await dynamo.teams.change(ACME, "search", lambda it: it, by=TESTER) is None
    assert await actions_of(dynamo) == [
        ("team.change", "search"),
        ("team.create", "search"),
        ("team.delete", "search"),
    ]


async def test_lists_of_people_come_in_pages_in_the_order_of_ids(dynamo: DynamoStores) -> None:
    for name in ("c", "a", "b"):
        await _team(dynamo, name)
        await add_member(dynamo, f"{name}@x")
    first = await dynamo.teams.list(ACME, limit=2)
    assert [team.id for team in first.found] == ["a", "b"]
    rest = await dynamo.teams.list(ACME, after=first.next, limit=2)
    assert [team.id for team in rest.found] == ["c"]
    members = await dynamo.members.list(ACME, after="a@x")
    assert [member.id for member in members.found] == ["b@x", "c@x"]
    for store in (dynamo.teams, dynamo.members):
        with pytest.raises(RequestError) as refused:
            await store.list(ACME, after="#")
        assert refused.value.param == "cursor"


async def test_a_team_is_kept_while_keys_or_members_belong_to_it(dynamo: DynamoStores) -> None:
    await _team(dynamo)
    await _team(dynamo, "other")
    await add_member(dynamo, team_id="search")
    new = NewKey(workspace_id=ACME, label="a", team_id="search")
    key = (await dynamo.keys.create(new, by=TESTER)).summary

    left = await dynamo.teams.delete(ACME, "search", by=TESTER)
    assert left is not None
    assert (left.keys, left.members) == (1, 1)

    await dynamo.keys.change(ACME, key.id, lambda it: replace(it, team_id="other"), by=TESTER)
    await dynamo.members.remove(ACME, ANA, by=TESTER)
    left = await dynamo.teams.delete(ACME, "search", by=TESTER)
    assert left is not None
    assert (left.keys, left.members) == (0, 0)


@pytest.mark.parametrize("field", ["team_id", "member_id"])
async def test_a_key_belongs_only_to_whom_there_is(dynamo: DynamoStores, field: str) -> None:
    await _team(dynamo, "gone")
    await dynamo.teams.delete(ACME, "gone", by=TESTER)
    await add_member(dynamo, "gone")
    await dynamo.members.remove(ACME, "gone", by=TESTER)
    for name in ("gone", "unknown", "no#id"):
        new = replace(NewKey(workspace_id=ACME, label="a"), **{field: name})
        with pytest.raises(RequestError) as refused:
            await dynamo.keys.create(new, by=TESTER)
        assert refused.value.param == field


async def test_a_principal_has_what_its_member_and_its_team_give_it(dynamo: DynamoStores) -> None:
    await _team(dynamo, tier="gold", models=("a/*",), concurrency=3)
    await add_member(dynamo, team_id="search", role="viewer")
    new = NewKey(workspace_id=ACME, label="a", member_id=ANA, labels={"team": "by hand"})
    created = await dynamo.keys.create(new, by=TESTER)

    principal = await dynamo.keys.authenticate(created.secret)
    assert (principal.role, principal.tier) == ("inference", "gold")
    assert principal.labels == {"team": "search", "member": ANA}
    assert (principal.team_id, principal.member_id, principal.session) == ("search", ANA, False)
    assert [(it.level, it.id, it.limited, it.models) for it in principal.levels] == [
        ("member", ANA, False, None),
        ("team", "search", True, ("a/*",)),
    ]


async def test_c60_a_removed_member_is_refused_by_another_process_within_five_seconds(
    dynamo: DynamoStores,
) -> None:
    await _team(dynamo)
    await add_member(dynamo, team_id="search", role="developer")
    created = await dynamo.keys.create(
        NewKey(workspace_id=ACME, label="a", member_id=ANA), by=TESTER
    )
    session = await dynamo.sessions.open(ACME, ANA, lifetime_s=600, by=TESTER)
    assert session is not None
    clock = HandClock(dynamo.clock.now)
    other = dynamo_stores(dynamo.client, dynamo.tables, clock)
    for secret in (created.secret, session.secret):
        await other.keys.authenticate(secret)

    assert await dynamo.members.remove(ACME, ANA, by=TESTER) is True
    assert await dynamo.members.remove(ACME, ANA, by=TESTER) is False
    clock.now += 5.0
    for secret in (created.secret, session.secret):
        with pytest.raises(AccessError) as refused:
            await other.keys.authenticate(secret)
        assert refused.value.code is ErrorCode.INVALID_API_KEY


@pytest.mark.parametrize("level", ["team", "member"])
async def test_c60_a_tombstone_above_a_key_refuses_the_key(
    dynamo: DynamoStores, level: AboveKey
) -> None:
    """A team with keys is not deleted, but what authentication reads decides."""
    await _team(dynamo)
    await add_member(dynamo, team_id="search")
    new = NewKey(workspace_id=ACME, label="a", member_id=ANA)
    secret = (await dynamo.keys.create(new, by=TESTER)).secret
    await dynamo.keys.authenticate(secret)
    await dynamo.client.call(
        "UpdateItem",
        {
            "TableName": dynamo.tables.core,
            "Key": level_row_key(level, ACME, "search" if level == "team" else ANA),
            "UpdateExpression": f"SET {LevelItem.GONE} = :now",
            "ExpressionAttributeValues": {":now": number(int(dynamo.clock.now))},
        },
    )
    dynamo.clock.now += 5.0
    with pytest.raises(AccessError) as refused:
        await dynamo.keys.authenticate(secret)
    assert refused.value.code is ErrorCode.INVALID_API_KEY


async def test_c60_a_member_who_is_removed_meanwhile_gets_no_session(dynamo: DynamoStores) -> None:
    class Removing:
        """Removes the member after it was read and before its session is written."""

        removed = False

        async def call(
            self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
        ) -> AwsReply:
            if "session.open" in str(payload) and not self.removed:
                self.removed = True
                assert await dynamo.members.remove(ACME, ANA, by=TESTER)
            return await dynamo.client.call(operation, payload, attempts_max=attempts_max)

    await add_member(dynamo)
    removing = Removing()
    stores = dynamo_stores(removing, dynamo.tables, dynamo.clock)
    assert await stores.sessions.open(ACME, ANA, lifetime_s=600, by=TESTER) is None
    assert removing.removed
    assert ("session.open", ANA) not in await actions_of(dynamo)


async def test_an_identity_signs_in_as_oneadd_member(dynamo: DynamoStores) -> None:
    subject = "https://issuer.example 7f1"
    await add_member(dynamo)
    assert await dynamo.members.find_by_subject(ACME, subject) is None
    linked = await dynamo.members.link(ACME, ANA, subject, by=TESTER)
    assert linked is not None
    assert linked.subject == subject
    assert await dynamo.members.find_by_subject(ACME, subject) == linked
    # Neither has the identity another member, nor the member another identity.
    assert await dynamo.members.link(ACME, ANA, "https://issuer.example 8", by=TESTER) is None
    await add_member(dynamo, "bo")
    assert await dynamo.members.link(ACME, "bo", subject, by=TESTER) is None
    taken = await dynamo.members.create(ACME, "cy", MemberSettings(), subject=subject, by=TESTER)
    assert taken is None
    assert await dynamo.members.find_by_subject("other", subject) is None


@pytest.mark.parametrize("way", ["remove", "demote"])
async def test_a_workspace_keeps_an_owner(honest: DynamoStores, way: str) -> None:
    dynamo = honest

    async def leave(name: str) -> object:
        if way == "remove":
            return await dynamo.members.remove(ACME, name, by=TESTER)
        return await dynamo.members.change(
            ACME, name, lambda it: replace(it, role="viewer"), by=TESTER
        )

    for name in ("ana", "bo"):
        await add_member(dynamo, name, role="owner")
    await add_member(dynamo, "cy", role="admin")
    # Both at once: one of them stays.
    outcomes = await asyncio.gather(leave("ana"), leave("bo"), return_exceptions=True)
    [refused] = [it for it in outcomes if isinstance(it, BaseException)]
    assert isinstance(refused, RequestError)
    assert refused.param == ("member_id" if way == "remove" else "role")
    members = (await dynamo.members.list(ACME)).found
    owners = [it.id for it in members if it.role == "owner" and it.removed_s is None]
    assert len(owners) == 1
    assert await leave("cy")
