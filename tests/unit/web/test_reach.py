"""Each caller by each owner: the ids in a request's path and those in its body follow one rule.

Keeps C80, C91, C98.
"""

import dataclasses
from typing import Any, Final

import pytest
from msgspec.structs import replace

from tests.asgi import Exchange
from tests.gateways import store_is_away
from tests.memory.files import ShelvedFiles
from tests.memory.people import MemorySessionStore
from tests.scripted import Scripted, answers
from tests.stored_responses import Shop, id_of, open_shop
from tests.stores import PREFIX, TESTER
from tests.unit.web.test_response_storage import Shelf
from tollgate.core.files.stored import FoundFile
from tollgate.core.records.audit import Actor
from tollgate.ingress.responses.stored import StoredResponse, encode_stored
from tollgate.stores.ports.access_log import Denial, ReadContent
from tollgate.stores.rules.level_settings import MemberSettings

NOBODY: Final = "nobody"
# The owners that a caller reaches, stated apart from the table of access.
REACHED: Final = {
    "alone": {NOBODY},
    "for bob": {"bob"},
    "bob's key": {"bob"},
    "eve's key": {"eve"},
    "bob": {"bob"},
    "ada": {NOBODY, "bob", "eve"},
}
MAKERS: Final = {NOBODY: "alone", "bob": "bob's key", "eve": "eve's key"}


def file_of(owner: str) -> FoundFile:
    return FoundFile(
        place="files/kept/a",
        member_id=None if owner == NOBODY else owner,
        filename="a.txt",
        media_type="text/plain",
        size_bytes=5,
    )


class NoAccessLog:
    """An access log whose store does not answer."""

    async def note_read(self, kind: ReadContent, target: str, *, by: Actor) -> None:
        raise store_is_away()

    async def note_refusal(self, refusal: Denial, target: str, code: str, *, by: Actor) -> None:
        pass


async def crowd() -> tuple[Shop, dict[str, str]]:
    """Sessions of a developer and of an admin, and keys with and without members."""
    shop = await open_shop(Shelf(), near=Scripted(*[answers("Hello")] * 9))
    stores = shop.home.stores
    sessions = MemorySessionStore(
        stores.books, shop.home.gateway.ids, stores.clock, stores.keys, PREFIX
    )
    secrets = {"alone": shop.secret}
    for name, role in (("bob", "developer"), ("eve", "developer"), ("ada", "admin")):
        settings = MemberSettings(role=role)  # type: ignore[arg-type]  # one of the literals
        await stores.members.create("acme", name, settings, by=TESTER)
        session = await sessions.open("acme", name, lifetime_s=3_600, by=TESTER)
        assert session is not None
        secrets[name] = session.secret
        secrets[f"{name}'s key"] = await shop.key(f"{name}'s", member_id=name, response_days=7)
    secrets["for bob"] = await shop.key("for bob", labels={"member": "bob"}, response_days=7)
    for key in stores.books.keys.values():
        key.settings = replace(key.settings, response_days=7)
    return shop, secrets


@pytest.mark.parametrize("owner", sorted(MAKERS))
@pytest.mark.parametrize("caller", sorted(REACHED))
async def test_c80_c91_a_response_is_shown_to_and_continued_by_the_same_callers(
    caller: str, owner: str
) -> None:
    shop, secrets = await crowd()
    first = await shop.ask("My secret.", secret=secrets[MAKERS[owner]])
    item = first.json["output"][0]["id"]
    reached = owner in REACHED[caller]

    async def continued(**fields: Any) -> Exchange:
        return await shop.ask(fields.pop("input", "On"), secret=secrets[caller], **fields)

    shown = await shop.api("GET", f"/v1/responses/{id_of(first)}", key=secrets[caller])
    assert shown.status == (200 if reached else 404)
    record = await shop.api(
        "GET", f"/v1/generation?id={first.headers['x-generation-id']}", key=secrets[caller]
    )
    assert record.status == (200 if reached else 404)
    went_on = await continued(previous_response_id=id_of(first))
    referenced = await continued(input=[{"type": "item_reference", "id": item}])
    if reached:
        assert (went_on.status, referenced.status) == (200, 200)
    else:
        assert went_on.error["code"] == "previous_response_not_found"
        assert (referenced.status, referenced.error["param"]) == (404, "input[0].id")
        assert len(shop.home.near.requests) == 1


@pytest.mark.parametrize("owner", sorted(MAKERS))
@pytest.mark.parametrize("caller", sorted(REACHED))
async def test_c70_c91_a_file_in_a_body_is_found_by_those_who_may_download_it(
    caller: str, owner: str
) -> None:
    shop, secrets = await crowd()
    files = ShelvedFiles({("acme", "file-a"): (file_of(owner), b"hello")})
    shop.home.gateway = replace(shop.home.gateway, files=files)
    shop.api.changes["named_files"] = files
    part = {"type": "input_file", "file_id": "file-a"}
    input_ = [{"role": "user", "content": [part]}]
    model = {"model": "acme/small", "input": input_}
    explain = "/v1/route/explain?format=responses"
    secret = secrets[caller]
    replies = [
        await shop.ask(input_, secret=secret),
        await shop.ask(input_, secret=secret, path="/v1/responses/input_tokens"),
        await shop.api("POST", explain, key=secret, content=model),
    ]
    field = "input[0].content[0].file_id"
    refused = [
        f"There is no file with the id in {field}." in it.error["message"]
        for it in replies
        if field.encode() in it.body
    ]
    assert refused == ([] if owner in REACHED[caller] else [True] * 3)


@pytest.mark.parametrize("caller", ["ada", "bob"])
async def test_c98_content_of_others_that_a_manager_gives_to_a_model_is_recorded(
    caller: str,
) -> None:
    shop, secrets = await crowd()
    files = ShelvedFiles(
        {("acme", f"file-{owner}"): (file_of(owner), b"hello") for owner in ("ada", "bob")}
    )
    shop.home.gateway = replace(shop.home.gateway, files=files)
    responses = [id_of(await shop.ask("Hi", secret=secrets[owner])) for owner in ("ada", "bob")]
    for file_id in ("file-ada", "file-bob"):
        input_ = [{"role": "user", "content": [{"type": "input_file", "file_id": file_id}]}]
        await shop.ask(input_, secret=secrets[caller])
    for response_id in responses:
        await shop.ask("On", secret=secrets[caller], previous_response_id=response_id)
    entries = shop.home.stores.books.entries_of_audit
    found = {(it.action, it.target, it.actor.member_id) for it in entries if it.kind == "access"}
    read = {("file.read", "file-bob", "ada"), ("response.read", responses[1], "ada")}
    assert found == (read if caller == "ada" else set())


async def test_c98_nothing_of_others_reaches_a_model_without_an_entry() -> None:
    shop, secrets = await crowd()
    first = id_of(await shop.ask("Hi", secret=secrets["bob"]))
    shop.home.stores = dataclasses.replace(shop.home.stores, access_log=NoAccessLog())
    refused = await shop.ask("On", secret=secrets["ada"], previous_response_id=first)
    assert (refused.status, refused.error["code"]) == (503, "service_unavailable")
    assert len(shop.home.near.requests) == 1


async def test_c80_a_response_of_an_older_version_is_continued_until_it_expires() -> None:
    shop, secrets = await crowd()
    first = id_of(await shop.ask("Hi", secret=secrets["eve's key"]))
    shelf = shop.log
    assert isinstance(shelf, Shelf)
    [generation_id] = shelf.contents
    stored = StoredResponse.from_bytes(shelf.contents[generation_id])
    assert stored.owner == "eve"
    content = encode_stored(stored.response, stored.input, owner="eve")
    shelf.contents[generation_id] = content.replace(b',"owner":"eve"', b"")
    went_on = await shop.ask("On", secret=secrets["bob's key"], previous_response_id=first)
    assert went_on.status == 200
