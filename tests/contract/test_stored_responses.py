"""Responses are stored for the keys and workspaces that opt in, and for no other.

Keeps C69, C74, C80.
"""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.memory.workspaces import MemoryWorkspaceStore
from tests.open_responses import check_response
from tests.scripted import Scripted, answers
from tests.stored_responses import PATH, id_of, open_shop
from tests.stores import TESTER, DynamoStores, HandClock, MemoryStores
from tollgate.aws.objects import ObjectStore
from tollgate.core.clock import DAY_S
from tollgate.core.ids import IdSource, created_s
from tollgate.stores.ports.administration import WorkspaceSettings
from tollgate.stores.records.contents import ObjectContentLog
from tollgate.stores.records.kept_answers import DynamoAnswerStore
from tollgate.stores.rules.key_settings import CONTENT_DAYS
from tollgate.web.records import response_routes as responses


@pytest.fixture
def log(objects: ObjectStore) -> ObjectContentLog:
    return ObjectContentLog(objects, clock=HandClock(0), kind="responses")


@pytest.mark.parametrize("stream", [False, True])
async def test_c80_a_response_is_read_again_as_its_client_saw_it(
    log: ObjectContentLog, stream: bool
) -> None:
    shop = await open_shop(log)
    reply = await shop.ask("Say hello.", stream=stream)
    if stream:
        last = reply.body.split(b"\n\n")[-2].splitlines()
        assert last[0] == b"event: response.completed"
        seen = json.loads(last[1].removeprefix(b"data: "))["response"]
    else:
        seen = reply.json
    assert seen["store"] is True
    shown = await shop.call("GET", seen["id"])
    assert (shown.status, shown.json) == (200, seen)
    check_response(shown.json)
    assert (await shop.call("GET", f"{seen['id']}?include[]=message.output_text.logprobs")).json
    refused = await shop.call("GET", f"{seen['id']}?stream=true")
    assert (refused.status, refused.error["param"]) == (400, "stream")


async def test_c80_it_is_readable_when_the_last_bytes_leave(log: ObjectContentLog) -> None:
    order: list[str] = []

    class Watched(ObjectContentLog):
        async def keep(self, *place: Any, days: int) -> None:
            await log.keep(*place, days=days)
            order.append("kept")

    shop = await open_shop(Watched(log._objects, clock=HandClock(0), kind="responses"))
    shop.home.trace.clear()
    await shop.ask("Say hello.", stream=True)
    assert order == ["kept"]


async def test_c80_a_turn_continues_with_what_was_asked_and_answered(
    log: ObjectContentLog,
) -> None:
    shop = await open_shop(log, near=Scripted(answers("Hello"), answers("Again"), answers("Bye")))
    first = id_of(await shop.ask("Say hello.", instructions="Be kind."))
    second = await shop.ask("And again.", previous_response_id=first)
    assert second.json["previous_response_id"] == first
    assert shop.prompt == [
        {"role": "user", "content": "Say hello."},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "And again."},
    ]
    await shop.ask("Bye.", previous_response_id=id_of(second), store=False, instructions="Be curt.")
    assert [it["content"] for it in shop.prompt] == [
        "Be curt.",
        "Say hello.",
        "Hello",
        "And again.",
        "Again",
        "Bye.",
    ]


async def test_c80_stored_turns_count_where_a_prompt_is_estimated(log: ObjectContentLog) -> None:
    shop = await open_shop(log)
    first = id_of(await shop.ask("word " * 4_000, model="acme/large"))
    refused = await shop.ask("More.", previous_response_id=first)
    assert (refused.status, refused.error["code"]) == (400, "context_length_exceeded")


async def test_c80_stored_turns_count_where_tokens_are_counted(log: ObjectContentLog) -> None:
    shop = await open_shop(log)
    first = id_of(await shop.ask("word " * 400))
    billed = shop.home.record
    counts = f"{PATH}/input_tokens"
    alone, after = [
        (await shop.ask("More.", path=counts, **fields)).json["input_tokens"]
        for fields in ({}, {"previous_response_id": first})
    ]
    assert alone < 20
    assert after > alone + 400
    reference = [{"type": "item_reference", "id": f"msg_{first.removeprefix('resp_')}_0"}]
    assert (await shop.ask(reference, path=counts)).status == 200
    refused = await shop.ask("Hi", path=counts, previous_response_id="resp_5g0DOBgUqHItj5y")
    assert (refused.status, refused.error["code"]) == (400, "previous_response_not_found")
    assert shop.home.record == billed


async def test_c80_items_are_listed_in_pages(log: ObjectContentLog) -> None:
    shop = await open_shop(log, near=Scripted(answers("Hello"), answers("Again")))
    first = id_of(await shop.ask("Say hello."))
    second = id_of(
        await shop.ask(
            [
                {"role": "user", "content": [{"type": "input_text", "text": "And"}]},
                {"type": "message", "role": "user", "content": "again.", "id": "msg_mine"},
            ],
            previous_response_id=first,
        )
    )
    listed = (await shop.call("GET", f"{second}/input_items?order=asc")).json
    assert (listed["object"], listed["has_more"]) == ("list", False)
    assert [it["content"][0]["text"] for it in listed["data"]] == [
        "Say hello.",
        "Hello",
        "And",
        "again.",
    ]
    ids = [it["id"] for it in listed["data"]]
    assert len(set(ids)) == 4
    assert (listed["first_id"], listed["last_id"], ids[3]) == (ids[0], ids[3], "msg_mine")
    page = (await shop.call("GET", f"{second}/input_items?limit=2&after={ids[3]}")).json
    assert [it["id"] for it in page["data"]] == [ids[2], ids[1]]
    assert page["has_more"] is True
    for query, param in (("limit=0", "limit"), ("limit=101", "limit"), ("after=x", "after")):
        refused = await shop.call("GET", f"{second}/input_items?{query}")
        assert (refused.status, refused.error["param"]) == (400, param)


async def test_c80_a_page_has_room_in_a_reply_of_the_platform(
    log: ObjectContentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "REPLY_BYTES_MAX", 2_000)
    shop = await open_shop(log)
    made = id_of(await shop.ask([{"role": "user", "content": "word " * 200}] * 3))
    seen: list[str] = []
    more, after = True, ""
    while more:
        page = (await shop.call("GET", f"{made}/input_items?order=asc{after}")).json
        seen += [item["id"] for item in page["data"]]
        more, after = page["has_more"], f"&after={page['last_id']}"
    assert len(page["data"]) == 1
    assert len(set(seen)) == 3


async def test_c80_ids_that_are_no_text_are_replaced(log: ObjectContentLog) -> None:
    shop = await open_shop(log)
    odd = [{"type": "web_search_call", "id": [5]}, {"role": "user", "content": "Hi", "id": ""}]
    made = id_of(await shop.ask(odd))
    again = await shop.ask("On", previous_response_id=made)
    listed = (await shop.call("GET", f"{id_of(again)}/input_items?order=asc")).json
    assert [it["id"].partition("_")[0] for it in listed["data"]] == ["item", "msg", "msg", "msg"]


async def test_c68_c80_a_repeated_answer_is_the_stored_response(
    stores: MemoryStores | DynamoStores, objects: ObjectStore, log: ObjectContentLog
) -> None:
    if isinstance(stores, MemoryStores):
        pytest.skip("claims need a table")
    shop = await open_shop(log)
    shop.answers = DynamoAnswerStore(
        stores.client, stores.tables.core, objects, clock=shop.home.gateway.clock
    )
    first, second = [await shop.ask("Hi", claim="once") for _ in range(2)]
    assert second.headers["x-idempotent-replay"] == "true"
    assert second.json == first.json
    assert (await shop.call("GET", id_of(second))).json == first.json


async def test_c80_references_are_resolved_from_the_latest_response_that_has_them(
    log: ObjectContentLog,
) -> None:
    reads: list[str] = []

    class Counted(ObjectContentLog):
        async def get(
            self, workspace_id: str, generation_id: str, *, days: int | None = None
        ) -> bytes | None:
            reads.append(generation_id)
            return await log.get(workspace_id, generation_id, days=days)

        async def keep(self, *place: Any, days: int) -> None:
            await log.keep(*place, days=days)

    shop = await open_shop(
        Counted(log._objects, clock=HandClock(0)),
        near=Scripted(answers("One"), answers("Two"), answers("Three")),
    )
    conversation: list[Any] = [{"role": "user", "content": "1"}]
    clock = HandClock()
    shop.home.gateway = replace(shop.home.gateway, ids=IdSource(clock))
    for turn in ("2", "3"):
        # Ids sort by second.
        clock.now += 1
        [said] = (await shop.ask(conversation)).json["output"]
        conversation += [
            {"type": "item_reference", "id": said["id"]},
            {"role": "user", "content": turn},
        ]
    reads.clear()
    assert (await shop.ask(conversation)).status == 200
    assert [it["content"] for it in shop.prompt] == ["1", "One", "2", "Two", "3"]
    assert len(reads) == 1


async def test_c80_a_reference_to_an_item_of_the_earlier_turns_does_not_repeat_it(
    log: ObjectContentLog,
) -> None:
    shop = await open_shop(log, near=Scripted(answers("Hello"), answers("Again")))
    first = (await shop.ask("Say hello.")).json
    reference = {"type": "item_reference", "id": first["output"][0]["id"]}
    more = [reference, {"role": "user", "content": "More."}]
    assert (await shop.ask(more, previous_response_id=first["id"])).status == 200
    assert [it["content"] for it in shop.prompt] == ["Say hello.", "Hello", "More."]


async def test_c80_an_item_that_is_named_often_comes_once(log: ObjectContentLog) -> None:
    shop = await open_shop(log, near=Scripted(answers("Hello"), answers("Again")))
    first = (await shop.ask("Say hello.")).json
    reference = {"type": "item_reference", "id": first["output"][0]["id"]}
    more = {"role": "user", "content": "More."}
    assert (await shop.ask([*[reference] * 20, more])).status == 200
    assert [it["content"] for it in shop.prompt] == ["Hello", "More."]


async def test_c80_a_reference_to_nothing_is_named(log: ObjectContentLog) -> None:
    shop = await open_shop(log)
    missing = f"msg_{IdSource(HandClock()).new_id()}_0"
    refused = await shop.ask([{"type": "item_reference", "id": missing}])
    assert (refused.status, refused.error["param"]) == (404, "input[0].id")
    told = await shop.ask(
        [{"type": "item_reference", "id": "rs_1"}, {"role": "user", "content": "Hi"}]
    )
    assert told.headers["x-tollgate-adapted"] == "input[]:item_reference"


@pytest.mark.parametrize(
    ("input_", "fields", "param"),
    [
        ("Hi", {"previous_response_id": "resp_5g0DOBgUqHItj5y"}, "previous_response_id"),
        ([{"type": "item_reference", "id": "msg_5g0DOBgUqHItj5y_0"}], {}, "input[0]"),
    ],
)
async def test_c80_without_storage_a_refusal_says_how_to_switch_it_on(
    log: ObjectContentLog, input_: Any, fields: dict[str, str], param: str
) -> None:
    shop = await open_shop(log, days=None)
    refused = await shop.ask(input_, **fields)
    assert (refused.status, refused.error["param"]) == (400, param)
    assert "--response-days" in refused.error["message"]
    assert "store: false" in refused.error["message"]
    read = await shop.call("GET", "resp_5g0DOBgUqHItj5y")
    assert (read.status, read.error["param"]) == (400, "response_id")
    assert "--response-days" in read.error["message"]


@pytest.mark.parametrize("store", [None, True])
async def test_c80_a_key_without_storage_is_answered_all_the_same(
    log: ObjectContentLog, store: bool | None
) -> None:
    shop = await open_shop(log, days=None)
    reply = await shop.ask("Hi", **({} if store is None else {"store": store}))
    assert (reply.status, reply.json["store"]) == (200, False)
    assert reply.headers.get("x-tollgate-adapted") == ("store" if store else None)


async def test_c69_store_false_is_never_kept(log: ObjectContentLog) -> None:
    shop = await open_shop(log)
    reply = await shop.ask("Hi", store=False)
    assert reply.json["store"] is False
    assert (await shop.call("GET", id_of(reply))).status == 404


async def test_c80_a_workspace_opts_in_for_its_keys_and_a_key_says_otherwise(
    log: ObjectContentLog,
) -> None:
    shop = await open_shop(log, days=None)
    workspaces = MemoryWorkspaceStore(shop.home.stores.books, HandClock())
    await workspaces.create("acme", WorkspaceSettings(response_days=30), by=TESTER)
    reply = await shop.ask("Hi")
    made_s = created_s(id_of(reply).removeprefix("resp_"))
    assert reply.json["store"] is True
    own = await shop.key("own", response_days=1)
    short = id_of(await shop.ask("Hi", secret=own)).removeprefix("resp_")
    later = ObjectContentLog(log._objects, clock=HandClock(made_s + 2 * DAY_S), kind="responses")
    assert await later.get("acme", id_of(reply).removeprefix("resp_")) is not None
    assert await later.get("acme", short) is None


@pytest.mark.parametrize("days", CONTENT_DAYS)
async def test_c80_an_expired_response_is_not_found_though_its_object_is_there(
    objects: ObjectStore, days: int
) -> None:
    clock = HandClock()
    shop = await open_shop(ObjectContentLog(objects, clock=clock, kind="responses"), days=days)
    id_ = id_of(await shop.ask("Hi"))
    made_s = created_s(id_.removeprefix("resp_"))
    clock.now = made_s + days * DAY_S - 1
    assert (await shop.call("GET", id_)).status == 200
    clock.now = made_s + days * DAY_S
    assert (await shop.call("GET", id_)).status == 404
    refused = await shop.ask("Hi", previous_response_id=id_)
    assert (refused.status, refused.error["param"]) == (400, "previous_response_id")


@pytest.mark.parametrize("id_", ["resp_5g0DOBgUqHItj5y", "resp_1", ""])
async def test_c41_c80_an_unknown_previous_response_is_refused_as_openai_does(
    log: ObjectContentLog, id_: str
) -> None:
    refused = (await (await open_shop(log)).ask("Hi", previous_response_id=id_, stream=True)).error
    assert refused["type"] == "invalid_request_error"
    assert refused["code"] == "previous_response_not_found"
    assert refused["param"] == "previous_response_id"
    assert " not found" in refused["message"]


async def test_c80_a_deleted_response_is_gone_and_the_audit_log_says_who_did_it(
    log: ObjectContentLog,
) -> None:
    shop = await open_shop(log)
    id_ = id_of(await shop.ask("Hi"))
    deleted = await shop.call("DELETE", id_)
    assert deleted.json == {"id": id_, "object": "response", "deleted": True}
    assert await log.get("acme", id_.removeprefix("resp_")) is None
    for method, path in (("GET", id_), ("DELETE", id_), ("GET", f"{id_}/input_items")):
        assert (await shop.call(method, path)).status == 404
    entry = shop.home.stores.books.entries_of_audit[-1]
    assert (entry.action, entry.target, entry.workspace_id) == ("response.delete", id_, "acme")
    assert entry.actor.name == "stores"
