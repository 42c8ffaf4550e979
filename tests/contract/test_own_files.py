"""Members reach the files that they sent, and none of others.

Keeps C70, C91, C99.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.contract.test_file_routes import CAPS_OF_TESTS, Desk, open_desk
from tests.memory.people import MemorySessionStore
from tests.stores import PREFIX, TESTER, DynamoStores
from tests.unit.web.stored_content import kept_hold
from tollgate.core.records.subjects import PrivacySubject
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.rules.level_settings import MemberSettings

UPLOAD = {"filename": "a.txt", "purpose": "user_data", "bytes": 5, "mime_type": "text/plain"}


@pytest.fixture
async def desk(dynamo: DynamoStores, tmp_path: Any) -> Desk:
    """A desk where bob has a session and a key, and eve a key."""
    desk = await open_desk(dynamo, tmp_path, CAPS_OF_TESTS)
    home = desk.api.home
    stores = home.stores
    sessions = MemorySessionStore(stores.books, home.gateway.ids, stores.clock, stores.keys, PREFIX)
    for name in ("bob", "eve"):
        await stores.members.create("acme", name, MemberSettings(), by=TESTER)
        session = await sessions.open("acme", name, lifetime_s=3_600, by=TESTER)
        new = NewKey(workspace_id="acme", label=f"{name}'s key", member_id=name)
        made = await stores.keys.create(new, by=TESTER)
        assert session is not None
        desk.secrets |= {name: session.secret, f"{name}'s key": made.secret}
    return desk


@pytest.mark.parametrize("reader", ["bob", "bob's key"])
@pytest.mark.parametrize("sender", ["bob", "bob's key"])
async def test_c91_a_file_is_the_members_who_sent_it(desk: Desk, sender: str, reader: str) -> None:
    theirs = (await desk.upload(who="eve's key", name="eve.txt")).json
    workspaces = (await desk.upload(who="acme inference", name="all.txt")).json
    own = (await desk.upload(who=sender, name="bob.txt")).json
    listed = (await desk.call("GET", who=reader)).json
    assert [it["filename"] for it in listed["data"]] == ["bob.txt"]
    alone = (await desk.call("GET", who="acme inference")).json
    assert [it["filename"] for it in alone["data"]] == ["all.txt"]
    everything = (await desk.call("GET", who="acme management")).json
    assert {it["id"] for it in everything["data"]} == {theirs["id"], workspaces["id"], own["id"]}
    for method, path in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
        assert (await desk.call(method, f"/{own['id']}{path}", who=reader)).status == 200
        for other in (theirs, workspaces):
            refused = await desk.call(method, f"/{other['id']}{path}", who=reader)
            assert (refused.status, refused.error["param"]) == (404, "file_id")
    assert len((await desk.call("GET", who="acme management")).json["data"]) == 2


async def test_c91_a_member_adds_to_completes_and_cancels_no_upload_of_others(
    desk: Desk,
) -> None:
    made = {
        who: (await desk.api("POST", "/v1/uploads", key=desk.secrets[who], content=UPLOAD)).json
        for who in ("bob", "eve")
    }
    for end, content in (("complete", {"part_ids": ["part_x"]}), ("cancel", None)):
        path = f"/v1/uploads/{made['eve']['id']}/{end}"
        refused = await desk.api("POST", path, key=desk.secrets["bob"], content=content)
        assert (refused.status, refused.error["param"]) == (404, "upload_id")
    part = await desk.part(made["bob"]["id"], b"hello", who="bob")
    assert part.status == 200
    assert (await desk.part(made["eve"]["id"], b"hello", who="bob")).status == 404
    done = await desk.api(
        "POST",
        f"/v1/uploads/{made['bob']['id']}/complete",
        key=desk.secrets["bob"],
        content={"part_ids": [part.json["id"]]},
    )
    assert done.json["status"] == "completed"


async def test_c99_a_file_of_a_member_on_hold_is_not_deleted(desk: Desk) -> None:
    bobs, eves = [(await desk.upload(who=f"{name}'s key")).json["id"] for name in ("bob", "eve")]
    bob = PrivacySubject(workspace_id="acme", kind="member", id="bob")
    subjects, held = desk.api.home.stores.subjects, replace(kept_hold(), subject=bob)
    await subjects.hold(held, by=TESTER)
    refused = await desk.call("DELETE", f"/{bobs}", "bob")
    assert (refused.status, refused.error["code"]) == (403, "permission_denied")
    assert (await desk.call("DELETE", f"/{eves}", "eve")).status == 200
    await subjects.release(held, by=TESTER)
    assert (await desk.call("DELETE", f"/{bobs}", "bob")).status == 200


async def test_c91_a_manager_lists_the_files_of_a_member_and_others_only_theirs(desk: Desk) -> None:
    bobs, eves = [(await desk.upload(who=f"{name}'s key")).json["id"] for name in ("bob", "eve")]
    for who, member, found in (
        ("acme management", "bob", [bobs]),
        ("acme management", "nobody", []),
        ("eve", "eve", [eves]),
    ):
        listed = await desk.call("GET", f"?member={member}", who)
        assert [it["id"] for it in listed.json["data"]] == found
    refused = await desk.call("GET", "?member=bob", "eve")
    assert (refused.status, refused.error["param"]) == (403, "member")
