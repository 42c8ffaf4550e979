"""What callers and operators see of a reused answer, and of the cache of a route.

Keeps C53, C59, C67, C68.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.asgi import request
from tests.compacting import MemoryAnswers, MemoryLog
from tests.gateways import Always
from tests.unit.engine.test_answer_cache import CHAT, HI, CachedHouse, cached
from tests.unit.web.test_api_app import Api, api
from tollgate.cli.routing.explanation import render_explanation
from tollgate.core.principal import AnswerSharing
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits
from tollgate.web.records.bill_notes import list_notes


async def ask(home: CachedHouse, path: str = CHAT, **stores: Any) -> Any:
    """Ask with an Idempotency-Key."""
    app = chat_app(home.home.front, Always(home.home.gateway), WebLimits(), **stores)
    headers = {"x-api-key": home.home.secret}
    if "answers" in stores:
        headers["idempotency-key"] = "once"
    content = HI if path == CHAT else {"input": "Hi"}
    body = json.dumps({"model": "faq", **content}).encode()
    return await request(app, "POST", path, headers=headers, body=body)


@pytest.mark.parametrize("stores", [True, False])
async def test_c59_responses_that_are_stored_are_never_reused(stores: bool) -> None:
    home = await cached(key={"response_days": 7 if stores else None})
    log = MemoryLog()
    replies = [await ask(home, "/v1/responses", responses=log) for _ in range(2)]
    shown = [reply.headers.get("x-tollgate-cache") for reply in replies]
    assert shown == ([None, None] if stores else ["miss", "hit; age=0"])
    assert (home.sent, bool(home.cache.stored)) == ((2, False) if stores else (1, True))


async def test_c59_c68_an_idempotency_key_repeats_a_reused_answer_and_its_id() -> None:
    home = await cached()
    await home.ask()
    kept = MemoryAnswers()
    first, second = [await ask(home, answers=kept) for _ in range(2)]
    assert first.headers["x-tollgate-cache"] == "hit; age=0"
    assert second.headers["x-idempotent-replay"] == "true"
    assert first.json == second.json
    assert len(home.records) == 2


async def test_c59_a_reply_may_name_the_generation_whose_answer_it_has() -> None:
    home = await cached()
    await home.ask()
    reply = await home.ask(headers={"x-tollgate-metadata": "enabled"})
    metadata = reply.json["tollgate_metadata"]
    assert metadata["reused_generation"] == f"gen-{home.records[0].id}"
    assert metadata["attempts"] == []
    assert list_notes(home.records[1], ())[1:] == [
        f"reused the answer of gen-{home.records[0].id}, which saved $0.00006"
    ]


@pytest.mark.parametrize(
    ("sharing", "fields", "unused"),
    [
        ("key", {}, None),
        (None, {}, "the key has no answer_cache"),
        ("key", {"temperature": 1}, "answers to this request may differ"),
    ],
)
async def test_c53_c59_an_explanation_says_whether_the_cache_is_used(
    sharing: AnswerSharing | None, fields: Mapping[str, Any], unused: str | None
) -> None:
    home = (await cached(sharing=sharing)).home
    call = Api(home, "", "")
    path, body = "/v1/route/explain", {"model": "faq", **HI, **fields}
    reply = await call("POST", path, key=home.secret, content=body)
    assert reply.json["cache"] == {"ttl_s": 600, "price_percent": 0, "unused": unused}
    words = unused or "Identical requests within 600 s get this answer, for nothing, if the key has"
    assert words in "\n".join(render_explanation(reply.json))
    plain = await call("POST", path, key=home.secret, content={**body, "model": "plain"})
    assert plain.json["cache"] is None


async def test_c59_a_key_consents_in_two_ways_and_in_no_other() -> None:
    call = await api()
    for stated, status in (
        ("key", 201),
        ("workspace", 201),
        (None, 201),
        ("all", 400),
        (True, 400),
    ):
        body = {"name": f"k {stated}", "answer_cache": stated}
        reply = await call("POST", "/v1/keys", key=call.management, content=body)
        assert reply.status == status, reply.body
        if status == 400:
            assert reply.error["param"] == "answer_cache"
        else:
            assert reply.json["data"]["answer_cache"] == stated
