"""Members reach their own things, and nothing that others have.

Keeps C91.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.memory.batches import MemoryBatchStore
from tests.memory.people import MemorySessionStore
from tests.stores import PREFIX, TESTER
from tests.unit.web.test_permissions import OPERATORS, Tenants, tenants
from tollgate.core.batches import Batch, BatchClient
from tollgate.core.files.stored import StoredFile
from tollgate.core.ids import first_id_of, following_id
from tollgate.core.principal import MemberRole
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings
from tollgate.web.request_examples import REQUEST_EXAMPLES

# Callers who reach what bob has and nothing else: his session, and a key of his.
HIS = ["bob", "bob's key"]


class Contents:
    """A content log that has the content of every generation."""

    async def get(self, workspace_id: str, generation_id: str) -> bytes | None:
        assert workspace_id == "acme"
        return b'{"id": "gen-x", "request": {}, "choices": []}'


class Responses:
    """A store that has a response for every generation."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    async def get(self, workspace_id: str, generation_id: str) -> bytes | None:
        return b'{"response":{"output":[]},"input":[]}'

    async def delete(self, workspace_id: str, generation_id: str, *, by: object) -> bool:
        self.deleted.append(generation_id)
        return True


class Household:
    """A workspace where bob and ana are developers with a key and a generation each."""

    def __init__(self, them: Tenants, keys: dict[str, str], generations: dict[str, str]) -> None:
        self.them = them
        self.keys = keys
        self.generations = generations

    async def ask(self, caller: str, method: str, path: str, content: object = None) -> Any:
        return await self.them.call(method, path, key=self.them.secrets[caller], content=content)


async def household(role: MemberRole = "developer") -> Household:
    them = await tenants()
    stores, services = them.home.stores, them.call.services
    them.call.changes |= {"contents": Contents(), "responses": Responses()}
    sessions = MemorySessionStore(
        stores.books, them.home.gateway.ids, stores.clock, stores.keys, PREFIX
    )
    keys, generations = {}, {}
    [[place, first]] = stores.books.records.items()
    await services.teams.create("acme", "bobs", LevelSettings(), by=TESTER)
    for name in ("bob", "eve"):
        settings = MemberSettings(role=role, team_id="bobs" if name == "bob" else "search")
        await services.members.create("acme", name, settings, by=TESTER)
        session = await sessions.open("acme", name, lifetime_s=3_600, by=TESTER)
        assert session is not None
        new = NewKey(workspace_id="acme", label=f"{name}'s key", member_id=name)
        created = await stores.keys.create(new, by=TESTER)
        them.secrets |= {name: session.secret, f"{name}'s key": created.secret}
        keys[name] = created.summary.id
        id_ = generations[name] = them.home.gateway.ids.new_id()
        stores.books.records[place[0], id_] = replace(
            first,
            id=id_,
            key_id=keys[name],
            key_label=f"{name}'s key",
            labels={"member": name},
            # Anybody may say so of themselves.
            caller_labels={"member": "bob"},
        )
    return Household(them, keys, generations)


@pytest.mark.parametrize(
    ("method", "path", "content"),
    [
        ("GET", "/v1/keys/{key}", None),
        ("PATCH", "/v1/keys/{key}", {"disabled": True}),
        ("POST", "/v1/keys/{key}/rotate", {}),
        ("DELETE", "/v1/keys/{key}", None),
        ("GET", "/v1/generation?id={generation}", None),
        ("GET", "/v1/generation/content?id={generation}", None),
        ("GET", "/v1/responses/resp_{generation}", None),
        ("GET", "/v1/responses/resp_{generation}/input_items", None),
        ("DELETE", "/v1/responses/resp_{generation}", None),
        ("GET", "/v1/members/{member}", None),
        ("GET", "/v1/teams/{team}", None),
    ],
)
async def test_c91_a_developer_reaches_their_own_and_gets_404_for_others(
    method: str, path: str, content: object
) -> None:
    home = await household()
    before = await home.them.state()
    for name, team in (("eve", "search"), ("bob", "bobs")):
        filled = path.format(
            key=home.keys[name], generation=home.generations[name], member=name, team=team
        )
        reply = await home.ask("bob", method, filled, content)
        if name == "bob":
            assert reply.status == 200, reply.body
        else:
            assert (reply.status, reply.error["code"]) == (404, "not_found")
            assert await home.them.state() == before
            assert home.them.call.changes["responses"].deleted == []


class BatchFiles:
    """A store that has an input file for a batch of each member."""

    async def get(self, workspace_id: str, file_id: str) -> StoredFile:
        return StoredFile(
            id=file_id,
            workspace_id=workspace_id,
            key_id="key",
            member_id=file_id.removeprefix("file-"),
            filename="a.jsonl",
            purpose="batch",
            media_type="application/jsonl",
            size_bytes=1,
            created_s=0,
        )


@pytest.mark.parametrize("client", ["openai", "anthropic"])
async def test_c83_c91_a_developer_reaches_their_own_batches_alone(client: BatchClient) -> None:
    home, store = await household(), MemoryBatchStore()
    home.them.call.changes |= {"batches": store, "files": BatchFiles()}
    path = "/v1/batches" if client == "openai" else "/v1/messages/batches"
    shown: dict[str, str] = {}
    for name in ("bob", "eve"):
        bare = home.them.home.gateway.ids.new_id()
        shown[name] = ("batch_" if client == "openai" else "msgbatch_") + bare
        await store.create(
            Batch(
                id=f"batch_{bare}",
                workspace_id="acme",
                key_id=home.keys[name],
                member_id=name,
                client=client,
                endpoint="/v1/chat/completions",
                input_file_id="file-x",
                times={"validating": 0},
                expires_s=2_000_000_000,
            )
        )
    for method, end in (("GET", ""), ("POST", "/cancel")):
        reply = await home.ask("bob", method, f"{path}/{shown['eve']}{end}")
        assert reply.status == 404, reply.body
        reply = await home.ask("bob", method, f"{path}/{shown['bob']}{end}")
        assert reply.status == 200, reply.body
    listed = (await home.ask("bob", "GET", path)).json["data"]
    assert [it["id"] for it in listed] == [shown["bob"]]
    page = await store.page("acme", limit=9, client=client)
    statuses = {it.member_id: it.status for it in page.found}
    assert statuses == {"bob": "cancelling", "eve": "validating"}


async def test_c83_c91_a_batch_reads_no_file_of_another_member() -> None:
    home, store = await household(), MemoryBatchStore()
    home.them.call.changes |= {"batches": store, "files": BatchFiles()}
    for name, status in (("eve", 404), ("bob", 200)):
        body = {**REQUEST_EXAMPLES["BatchBody"], "input_file_id": f"file-{name}"}
        reply = await home.ask("bob's key", "POST", "/v1/batches", body)
        assert reply.status == status, reply.body
    [batch] = (await store.page("acme", limit=9)).found
    assert (batch.input_file_id, batch.member_id) == ("file-bob", "bob")


async def test_c83_c98_a_manager_who_batches_a_file_of_a_member_is_recorded() -> None:
    home, store = await household(), MemoryBatchStore()
    home.them.call.changes |= {"batches": store, "files": BatchFiles()}
    owner = await home.them.sign_in("acme", "owner")
    for file_id in ("file-bob", "file-the-owner"):
        body = {**REQUEST_EXAMPLES["BatchBody"], "input_file_id": file_id}
        assert (await home.ask(owner, "POST", "/v1/batches", body)).status == 200
    entries = home.them.home.stores.books.entries_of_audit
    [read] = [it for it in entries if it.action == "file.read"]
    assert (read.target, read.actor.member_id) == ("file-bob", "the-owner")


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/v1/keys", ["bob's key", "session:bob"]),
        ("/v1/generations", ["bob's key"]),
        ("/v1/activity", ["bob's key"]),
        ("/v1/members", ["bob"]),
        ("/v1/teams", ["bobs"]),
    ],
)
async def test_c91_a_developers_lists_have_their_own_things(path: str, own: list[str]) -> None:
    home = await household()
    listed = (await home.ask("bob", "GET", path)).json["data"]
    assert sorted(it.get("key_name") or it.get("name") or it["id"] for it in listed) == own
    everybodys = (await home.ask("acme management", "GET", path)).json["data"]
    assert len(everybodys) > len(listed)


@pytest.mark.parametrize("caller", HIS)
async def test_c91_a_key_of_a_member_shows_what_the_member_sees(caller: str) -> None:
    home = await household()
    for name, status in (("bob", 200), ("eve", 404)):
        for path in ("/v1/generation?id=gen-{}", "/v1/responses/resp_{}"):
            reply = await home.ask(caller, "GET", path.format(home.generations[name]))
            assert (reply.status == 200) is (status == 200)
    path = f"/v1/generation?id={home.generations['bob']}"
    assert (await home.ask("acme inference", "GET", path)).status == 404
    assert (await home.ask("acme management", "GET", path)).status == 200


async def test_c91_an_unknown_key_is_not_explained_by_the_names_of_others_keys() -> None:
    home = await household()
    for path in ("/v1/generations", "/v1/activity"):
        refused = await home.ask("bob", "GET", f"{path}?key=eve's kay")
        assert (refused.status, refused.error["param"]) == (404, "key")
        assert "eve's key" not in refused.error["message"]
        found = await home.ask("bob", "GET", f"{path}?key=bob's key")
        assert len(found.json["data"]) == 1


@pytest.mark.parametrize(
    ("caller", "others", "is_noted"),
    [
        ("bob", {}, True),
        ("acme management", {}, True),
        # A manager reaches the other key's records, but the notes are about one key.
        ("acme management", {"key_id": "another"}, False),
        ("bob", {"labels": {"member": "eve"}}, False),
    ],
)
async def test_c67_c91_notes_compare_with_the_same_keys_and_members_records_alone(
    caller: str, others: dict[str, Any], is_noted: bool
) -> None:
    home = await household()
    records, named = home.them.home.stores.books.records, home.generations["bob"]
    [(workspace, record)] = [(w, each) for (w, id_), each in records.items() if id_ == named]
    line = replace(record.lines[0], cost_nano_usd=1)
    for number in range(10):
        id_ = following_id(first_id_of(record.created_s - 60), number)
        cheap = replace(record, id=id_, cost_nano_usd=1, lines=(line,))
        records[workspace, id_] = replace(cheap, **others)
    path = f"/v1/generation?id={named}&notes=true"
    notes = (await home.ask(caller, "GET", path)).json["data"]["notes"]
    assert any("why so much" in note for note in notes) == is_noted


async def test_c91_lists_are_filtered_by_team_and_member() -> None:
    home = await household()
    for path in ("/v1/generations", "/v1/activity"):
        everything = await home.ask("acme management", "GET", f"{path}?member=eve")
        assert [it["key_name"] for it in everything.json["data"]] == ["eve's key"]
        assert (await home.ask("acme management", "GET", f"{path}?team=none")).json["data"] == []
        refused = await home.ask("acme management", "GET", f"{path}?member=eve&label=member:bob")
        assert (refused.status, refused.error["param"]) == (400, "member")
    keys = await home.ask("acme management", "GET", "/v1/keys?member=eve")
    assert {it["name"] for it in keys.json["data"]} == {"session:eve", "eve's key"}
    assert (await home.ask("acme management", "GET", "/v1/keys?team=search")).json["data"] == []
    of_team = await home.ask("acme management", "GET", "/v1/members?team=bobs")
    assert [it["id"] for it in of_team.json["data"]] == ["bob"]


async def test_c91_content_of_others_stays_theirs_and_a_managers_view_is_whole() -> None:
    home = await household()
    for name in ("bob", "eve"):
        path = f"/v1/generation/content?id={home.generations[name]}"
        assert (await home.ask("acme management", "GET", path)).status == 200
    stranger = await home.ask(
        f"{OPERATORS} management", "GET", f"/v1/generation?id={home.generations['bob']}"
    )
    assert stranger.status == 404
