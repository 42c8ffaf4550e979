"""A refused caller costs almost nothing: bodies, stored turns and documents stay unread.

Keeps C9.
"""

import asyncio
import json
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace
from starlette.types import ASGIApp, Message

from tests import documents
from tests.asgi import exchange, request
from tests.gateways import Always, House, house
from tests.hostile.shapes import SHAPES, STORED_ID, Shape
from tests.memory.reader import InlineReader
from tests.scripted import Scripted, answers
from tests.stored_responses import id_of, open_shop
from tests.unit.engine.test_read_documents import MODELS, PLUGINS
from tests.unit.ingress.media_samples import data_url
from tests.unit.routing.catalogs import endpoint, model
from tests.unit.web.test_response_storage import Shelf
from tollgate.core.files.media_types import PDF
from tollgate.core.principal import Principal
from tollgate.engine.side_thread import LARGE_BYTES, SideThread
from tollgate.ingress import validation
from tollgate.ingress.formats import FORMATS
from tollgate.ingress.responses import parse
from tollgate.ingress.responses.stored import encode_stored, take_items
from tollgate.ingress.validation import VALUES_MAX
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits
from tollgate.web.http.reply import AsgiReply

PIECE = 16 * 1024
COUNTING = [each.counting.path for each in FORMATS if each.counting is not None]
ROUTES = [*(each.path for each in FORMATS), *COUNTING]
REFUSALS = {
    "no credit": "insufficient_credits",
    "no rate": "rate_limit_exceeded",
    "no slot": "rate_limit_exceeded",
    "locked": "workspace_locked",
}
LIMITS: Any = {"requests_per_minute": 1, "burst": 2, "concurrency": 9}
SLOW = NewKey(workspace_id="acme", label="hostile", **LIMITS)
ONE = {"model": "acme/small", "messages": [{"role": "user", "content": "Hi"}]}


def app_of(home: House) -> ASGIApp:
    return chat_app(home.front, Always(home.gateway), WebLimits())


async def refuse(home: House, why: str, principal: Principal | None = None) -> None:
    """Let every further hold of the key be refused for this reason."""
    principal = principal or home.principal
    books = home.stores.books
    wallet, key = books.wallets["acme"], books.keys[principal.key_id]
    match why:
        case "no credit":
            wallet.available = 0
        case "no rate":
            now_us = int(home.gateway.clock.now_s() * 1_000_000)
            for _ in range(2):
                key.rate = key.rate.take(key.rate.form(now_us), now_us)
        case "no slot":
            key.holds.update({home.gateway.ids.new_id(): 1 for _ in range(9)})
        case _:
            books.lock("acme")


class Body:
    """A body in pieces, which counts those that were read."""

    def __init__(self, size: int) -> None:
        self.pieces = size // PIECE
        self.read = 0

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(self.pieces):
            self.read += 1
            yield b"x" * PIECE


async def send(app: ASGIApp, secret: str, body: Any, path: str = "/v1/chat/completions") -> Any:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {secret}"}
    return await request(app, "POST", path, headers=headers, body=raw)


@pytest.mark.parametrize(
    ("path", "why"),
    [*((path, "no credit") for path in ROUTES), *((ROUTES[0], why) for why in REFUSALS)],
)
async def test_c9_a_refused_key_has_64_kb_of_its_body_read(path: str, why: str) -> None:
    home = await house(key=SLOW)
    await refuse(home, why)
    body = Body(50 * LARGE_BYTES)
    headers = {"authorization": f"Bearer {home.secret}"}
    sent = exchange("POST", path, headers=headers, body=body)
    await sent.run(app_of(home))
    assert sent.error["code"] == REFUSALS[why]
    # `Exchange` takes one piece ahead.
    assert body.read <= LARGE_BYTES // PIECE + 2
    assert home.journal.defects == []


@pytest.mark.parametrize("path", ["/v1/chat/completions", *COUNTING])
async def test_c9_a_short_body_of_many_values_is_not_decoded_for_a_refused_key(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = await house(key=SLOW)
    await refuse(home, "no credit")
    decoded: list[bytes] = []
    monkeypatch.setattr(validation, "_decode", decoded.append)
    reply = await send(app_of(home), home.secret, {**ONE, "tools": [[]] * 2_000}, path)
    assert reply.error["code"] == "insufficient_credits"
    assert decoded == []


@pytest.mark.parametrize("why", REFUSALS)
@pytest.mark.parametrize("referenced", [False, True])
async def test_c9_no_stored_turn_is_read_for_a_refused_key(why: str, referenced: bool) -> None:
    shelf = Shelf()
    shop = await open_shop(shelf)
    shop.secret = await shop.key("hostile", response_days=7, **LIMITS)
    first = await shop.ask("Hello")
    await refuse(shop.home, why, await shop.home.stores.keys.authenticate(shop.secret))
    shelf.reads.clear()
    named = id_of(first)
    item = {"type": "item_reference", "id": f"msg_{named.removeprefix('resp_')}_0"}
    fields = {} if referenced else {"previous_response_id": named}
    reply = await shop.ask([item] if referenced else "More", **fields)
    assert reply.error["code"] == REFUSALS[why]
    assert shelf.reads == []


@pytest.mark.parametrize("why", REFUSALS)
async def test_c9_no_document_is_read_for_a_refused_key(why: str) -> None:
    home, reader = await reading_house()
    await refuse(home, why)
    reply = await send(app_of(home), home.secret, with_document())
    assert reply.error["code"] == REFUSALS[why]
    assert reader.tasks == []


async def test_c9_of_requests_at_once_only_those_within_the_rate_have_documents_read() -> None:
    home, reader = await reading_house()
    app = app_of(home)
    replies = await asyncio.gather(*(send(app, home.secret, with_document()) for _ in range(12)))
    statuses = sorted(reply.status for reply in replies)
    assert statuses == [200] * 2 + [429] * 10
    assert len(reader.tasks) == 2


async def test_c9_an_admitted_request_counts_once_and_until_it_ends() -> None:
    """A refused, a failed and an answered request leave nothing behind."""
    home = await house(key=replace(SLOW, requests_per_minute=6_000, burst=100, concurrency=1))
    app = app_of(home)
    large = {**ONE, "messages": [{"role": "user", "content": "x" * LARGE_BYTES}]}
    for body, status in ((b"{" * 2 * LARGE_BYTES, 400), (large, 400), (large, 400)):
        reply = await send(app, home.secret, body)
        assert reply.status == status, reply.body
    served = {**large, "model": "acme/large"}
    for _ in range(2):
        reply = await send(app, home.secret, served)
        assert reply.status == 200, reply.body


async def test_c8_a_body_of_too_many_values_is_refused_before_it_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = await house()
    decoded: list[bytes] = []
    monkeypatch.setattr(validation, "_decode", decoded.append)
    lists = b"[" + b",".join([b"[]"] * VALUES_MAX) + b"]"
    body = json.dumps({**ONE, "tools": "T"}).encode().replace(b'"T"', lists)
    reply = await send(app_of(home), home.secret, body)
    assert (reply.status, reply.error["code"]) == (400, "invalid_request")
    assert f"{VALUES_MAX:,} JSON values" in reply.error["message"]
    assert decoded == []


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
async def test_c9_each_hostile_shape_is_refused_unread_and_unparsed(
    shape: Shape, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = Shelf()
    shop = await open_shop(shelf)
    shop.secret = await shop.key("hostile", response_days=7)
    await refuse(shop.home, "no credit")
    computed: list[object] = []

    async def run(_: SideThread, owner: str, work: Any, *, is_large: bool = True) -> Any:
        if is_large:
            computed.append(work)
        return work()

    monkeypatch.setattr(SideThread, "run", run)
    body = shape.make(0.01)
    pieces = [body[start : start + PIECE] for start in range(0, len(body), PIECE)]
    headers = {"authorization": f"Bearer {shop.secret}", "content-type": shape.content_type}
    sent = exchange("POST", shape.path, headers=headers, body=iter(pieces))
    await sent.run(shop.app)
    assert sent.error["code"] == "insufficient_credits"
    assert (computed, shelf.reads) == ([], [])


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", *COUNTING])
async def test_c9_a_large_body_is_parsed_next_to_the_event_loop(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode, threads = validation._decode, []

    def watched(body: bytes) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return decode(body)

    monkeypatch.setattr(validation, "_decode", watched)
    home = await house()
    for length in (10, 2 * LARGE_BYTES):
        fields = {"input": "x" * length} if "responses" in path else ONE | {"x": "x" * length}
        await send(app_of(home), home.secret, {"model": "acme/large", **fields}, path)
    assert threads == [True, False]


async def test_c9_a_stored_conversation_is_read_next_to_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shelf = Shelf()
    said = {"type": "message", "role": "user", "content": "x" * LARGE_BYTES}
    shelf.contents[STORED_ID] = encode_stored(b'{"output":[]}', [said])
    shop = await open_shop(shelf)
    threads = []

    def watched(validated: Any, *args: Any, **fields: Any) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return take_items(validated, *args, **fields)

    monkeypatch.setattr(parse, "take_items", watched)
    reply = await shop.ask("More", previous_response_id=f"resp_{STORED_ID}")
    assert reply.error["code"] == "context_length_exceeded"
    assert threads == [False]


class WatchedSide(SideThread):
    """A side thread that records which computations it ran outside the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.ran: list[str] = []

    async def run(self, workspace_id: str, work: Any, *, is_large: bool = True) -> Any:
        def watched() -> Any:
            if threading.current_thread() is not threading.main_thread():
                self.ran.append(getattr(work, "func", work).__qualname__)
            return work()

        return await super().run(workspace_id, watched, is_large=is_large)


@pytest.mark.parametrize("words", [1, 20_000])
async def test_c9_a_large_answer_is_rendered_and_stored_next_to_the_event_loop(words: int) -> None:
    models: Any = {"acme/large": model(endpoint("near", "m-1"), max_output=10**5, context=10**6)}
    near = Scripted(answers("word " * words))
    home = await house(
        key=NewKey(workspace_id="acme", label="stores", content_days=7, response_days=7),
        near=near,
        models=models,
        aliases={},
        routes={},
    )
    home.gateway = replace(home.gateway, side=(side := WatchedSide()))
    shelf = Shelf()
    app = chat_app(home.front, Always(home.gateway), WebLimits(), contents=shelf, responses=shelf)
    asked = {"model": "acme/large", "input": "Hi", "max_output_tokens": 10**5}
    reply = await send(app, home.secret, asked, "/v1/responses")
    assert reply.status == 200, reply.body
    expected = {
        "CollectSink.finish.<locals>.render",
        "ContentSink._encode",
        "StoringSink._keep.<locals>.encode",
    }
    assert set(side.ran) == (expected if words > 1 else set())


@pytest.mark.parametrize("words", [1, 220_000])
async def test_c9_the_last_events_of_a_large_stream_are_rendered_next_to_the_event_loop(
    words: int,
) -> None:
    models: Any = {"acme/large": model(endpoint("near", "m-1"), max_output=10**6, context=10**7)}
    near = Scripted(answers("word " * words))
    home = await house(near=near, models=models, aliases={}, routes={})
    home.gateway = replace(home.gateway, side=(side := WatchedSide()))
    asked = {"model": "acme/large", "input": "Hi", "stream": True}
    reply = await send(app_of(home), home.secret, asked, "/v1/responses")
    assert reply.body.count(b"event: response.completed") == 1
    expected = ["SseSink.send.<locals>.render", "UnknownFrames.close"]
    assert side.ran == (expected if words > 1 else [])


async def test_c9_other_requests_run_between_the_pieces_of_a_large_answer() -> None:
    sent: list[Message] = []
    turns: list[int] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def other() -> None:
        while True:
            turns.append(len(sent))
            await asyncio.sleep(0)

    running = asyncio.create_task(other())
    await asyncio.sleep(0)
    body = bytes(range(256)) * 10_000
    await AsgiReply(send).end(body)
    running.cancel()
    assert b"".join(message["body"] for message in sent) == body
    assert [message["more_body"] for message in sent] == [True, True, False]
    assert turns == [0, 1, 2]


async def test_c69_a_stored_request_is_not_decoded_again() -> None:
    home = await house(
        key=NewKey(workspace_id="acme", label="stores", content_days=7),
        near=Scripted(answers("Hello")),
    )
    shelf = Shelf()
    app = chat_app(home.front, Always(home.gateway), WebLimits(), contents=shelf)
    body = b'{ "model": "acme/large",  "messages": [{"role": "user", "content": "\\u0048i"}] }'
    reply = await send(app, home.secret, body)
    assert reply.status == 200, reply.body
    [content] = shelf.contents.values()
    assert body in content
    assert json.loads(content)["choices"][0][0]["text"] == "Hello"


async def test_c9_each_workspace_has_one_computation_in_the_queue() -> None:
    side, order = SideThread(), []
    gate = threading.Event()
    work = [side.run("a", partial(gate.wait, 10))]
    work += [side.run("a", partial(order.append, f"a{number}")) for number in range(3)]
    work.append(side.run("b", partial(order.append, "b")))
    running = asyncio.gather(*work)
    await asyncio.sleep(0)
    gate.set()
    await running
    assert order == ["b", "a0", "a1", "a2"]


async def test_c8_marks_within_strings_are_not_values() -> None:
    home = await house(near=Scripted(answers("Hello")))
    text = '[,{\\"' * VALUES_MAX
    reply = await send(app_of(home), home.secret, {"model": "acme/none", "messages": text})
    # The decoded body reaches the validation of its fields.
    assert (reply.status, reply.error["param"]) == (400, "messages")


async def reading_house() -> tuple[House, InlineReader]:
    sections: Any = {"models": MODELS, "plugins": PLUGINS, "aliases": {}, "routes": {}}
    home = await house(key=SLOW, **sections)
    reader = InlineReader()
    home.gateway = replace(home.gateway, reader=reader)
    return home, reader


def with_document() -> dict[str, Any]:
    file = {"filename": "a.pdf", "file_data": data_url(documents.pdf(["Profits rose."]), PDF)}
    content = [{"type": "file", "file": file}, {"type": "text", "text": "Sum it up."}]
    messages = [{"role": "user", "content": content}]
    return {"model": "acme/blind", "messages": messages, "max_tokens": 9}
