"""Content is kept for the keys that opt in, and for no other.

Keeps C69.
"""

import json
from typing import Any

import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house, request_body
from tests.scripted import Scripted, refuses, says
from tests.stores import TESTER, HandClock
from tests.unit.web.test_api_app import Api
from tollgate.aws.objects import ObjectStore
from tollgate.core.clock import DAY_S
from tollgate.core.errors import ErrorCode, LedgerError, RequestError
from tollgate.core.ids import created_s, without_prefix
from tollgate.engine.replies.content_log import ContentLog
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.records.contents import ObjectContentLog
from tollgate.stores.rules.key_settings import CONTENT_DAYS
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

PATH = "/v1/chat/completions"
ASKED = json.loads(request_body("acme/small"))


class FullBucket:
    """Nothing more fits in."""

    async def keep(self, *_: object, days: int) -> None:
        raise LedgerError(ErrorCode.SERVICE_UNAVAILABLE, "full")

    async def get(self, *_: object) -> bytes | None:
        raise AssertionError("nobody reads here")


@pytest.fixture
def contents(objects: ObjectStore) -> ObjectContentLog:
    return ObjectContentLog(objects, clock=HandClock(0))


async def ask(
    home: House, contents: ContentLog | None, *, days: int | None = 30, stream: bool = False
) -> Exchange:
    label = f"kept {days} {stream}"
    key = await home.stores.keys.create(
        NewKey(workspace_id="acme", label=label, content_days=days), by=TESTER
    )
    app = chat_app(home.front, Always(home.gateway), WebLimits(), contents=contents)
    return await request(
        app,
        "POST",
        PATH,
        headers={"authorization": f"Bearer {key.secret}"},
        body=request_body("acme/small", stream=stream),
    )


def generation_id(reply: Exchange) -> str:
    return without_prefix(reply.headers["x-generation-id"])


async def kept(contents: ContentLog, reply: Exchange) -> Any:
    content = await contents.get("acme", generation_id(reply))
    return None if content is None else json.loads(content)


@pytest.mark.parametrize("stream", [False, True])
async def test_c69_what_was_asked_and_answered_is_kept_for_a_key_that_opted_in(
    contents: ObjectContentLog, stream: bool
) -> None:
    reply = await ask(await house(), contents, stream=stream)
    assert reply.status == 200
    content = await kept(contents, reply)
    assert content["id"] == reply.headers["x-generation-id"]
    assert content["request"]["messages"] == ASKED["messages"]
    [[part]] = content["choices"]
    assert (part["type"], part["text"]) == ("text", "Hello")


@pytest.mark.parametrize("content", [b"", b"nonsense", b"{}"])
async def test_c69_content_that_cannot_be_read_is_said_to_be_so(content: bytes) -> None:
    class Damaged(FullBucket):
        async def get(self, *_: object) -> bytes | None:
            return content

    home = await house()
    admin = await home.stores.keys.create(
        NewKey(workspace_id="acme", label="admin", role="management"), by=TESTER
    )
    call = Api(home, admin.secret, "", {"contents": Damaged()})
    id_ = home.gateway.ids.new_id()
    reply = await call("GET", f"/v1/generation/content?id={id_}", key=admin.secret)
    assert (reply.status, reply.error["code"]) == (404, "not_found")
    assert f"gen-{id_} is corrupt" in reply.error["message"]


async def test_c69_nothing_is_kept_by_default(contents: ObjectContentLog) -> None:
    reply = await ask(await house(), contents, days=None)
    assert await kept(contents, reply) is None


async def test_c69_c80_contents_and_stored_responses_are_kept_apart(objects: ObjectStore) -> None:
    # Keys opt in to each of them for itself, and for other days.
    logs = [
        ObjectContentLog(objects, clock=HandClock(0)),
        ObjectContentLog(objects, clock=HandClock(0), kind="responses"),
    ]
    for place, log in enumerate(logs):
        await log.keep("acme", "Na1b2c3d4e5f6g7", b"%d" % place, days=min(CONTENT_DAYS))
    assert [await log.get("acme", "Na1b2c3d4e5f6g7") for log in logs] == [b"0", b"1"]


async def test_c69_another_workspace_reads_nothing_of_it(contents: ObjectContentLog) -> None:
    reply = await ask(await house(), contents)
    assert await contents.get("other", generation_id(reply)) is None


@pytest.mark.parametrize("days", CONTENT_DAYS)
async def test_c69_content_is_not_shown_any_longer_than_its_key_says(
    objects: ObjectStore, days: int
) -> None:
    home, clock = await house(), HandClock()
    contents = ObjectContentLog(objects, clock=clock)
    reply = await ask(home, contents, days=days)
    made_s = created_s(generation_id(reply))
    clock.now = made_s + days * DAY_S - 1
    assert await kept(contents, reply) is not None
    clock.now = made_s + days * DAY_S
    assert await kept(contents, reply) is None


async def test_c69_what_had_come_of_an_answer_that_broke_is_kept(
    contents: ObjectContentLog,
) -> None:
    broken = Scripted([*says("Hel"), RuntimeError("gone")])
    reply = await ask(await house(near=broken), contents, stream=True)
    [[part]] = (await kept(contents, reply))["choices"]
    assert part["text"] == "Hel"


async def test_c69_a_request_that_nobody_answered_is_kept_too(contents: ObjectContentLog) -> None:
    reply = await ask(await house(near=Scripted(refuses(400))), contents)
    assert reply.status == 400
    assert (await kept(contents, reply))["choices"] == [[]]


async def test_c69_an_answer_stands_where_its_content_cannot_be_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reply = await ask(await house(), FullBucket())
    assert reply.status == 200
    [line] = caplog.messages
    assert generation_id(reply) in line
    assert "Hello" not in line


async def test_c69_a_key_says_for_how_long_and_a_management_key_reads(
    contents: ObjectContentLog,
) -> None:
    home = await house()
    admin = await home.stores.keys.create(
        NewKey(workspace_id="acme", label="admin", role="management"), by=TESTER
    )
    call = Api(home, admin.secret, "", {"contents": contents})
    made = await call(
        "POST", "/v1/keys", key=admin.secret, content={"name": "kept", "content_days": 7}
    )
    assert made.json["data"]["content_days"] == 7
    changed = await call(
        "PATCH",
        f"/v1/keys/{made.json['data']['id']}",
        key=admin.secret,
        content={"content_days": None},
    )
    assert changed.json["data"]["content_days"] is None

    reply = await ask(home, contents)
    path = f"/v1/generation/content?id={reply.headers['x-generation-id']}"
    shown = await call("GET", path, key=admin.secret)
    assert shown.json["data"]["choices"] == [[{"type": "text", "text": "Hello", "cache": None}]]
    assert (await call("GET", path, key=home.secret)).status == 403
    assert (await call("GET", f"{path}0", key=admin.secret)).status == 404


@pytest.mark.parametrize("days", [0, 2, -1, 365])
def test_c69_other_numbers_of_days_have_no_expiry_rule_and_are_refused(days: int) -> None:
    with pytest.raises(RequestError, match="content_days"):
        NewKey(workspace_id="acme", label="x", content_days=days)


async def test_c69_a_deployment_without_a_bucket_says_so() -> None:
    home = await house()
    admin = await home.stores.keys.create(
        NewKey(workspace_id="acme", label="admin", role="management"), by=TESTER
    )
    call = Api(home, admin.secret, "", {"contents": None})
    refused = await call(
        "POST", "/v1/keys", key=admin.secret, content={"name": "kept", "content_days": 7}
    )
    assert (refused.status, refused.error["param"]) == (400, "content_days")
