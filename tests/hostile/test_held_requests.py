"""A large request that is paid for is computed next to the event loop, so that nobody waits.

Keeps C9.
"""

import asyncio
import gc
import json
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from typing_extensions import override

from tests.gateways import House, ShelvedMedia, house
from tests.hostile.shapes import STORED_ID
from tests.scripted import Answer, Scripted, answers, refuses
from tests.stored_responses import open_shop
from tests.unit.ingress.media_samples import PNG
from tests.unit.routing.catalogs import endpoint, model
from tests.unit.web.test_api_app import api
from tests.unit.web.test_response_storage import Shelf
from tollgate.core.content import Image, MediaUrl, Text
from tollgate.core.request import GenerationRequest, Message, UserMessage
from tollgate.engine.generate import generate
from tollgate.engine.side_thread import LARGE_BYTES, SideThread
from tollgate.ingress.responses.stored import encode_stored
from tollgate.providers.ports.base import Codec, FetchedMedia, Target, WireRequest
from tollgate.providers.ports.formats import codec_of

URL = "https://example.com/a.png"
SEEING = {
    "acme/large": model(
        endpoint("near", "L"),
        endpoint("far", "L"),
        input=("text", "image"),
        context=10_000_000,
    )
}
HELLO: Answer = answers("Hello")
# The provider's message is compared with the prompt.
REFUSED: Answer = refuses(400, code="context_length_exceeded")


def is_on_loop() -> bool:
    return threading.current_thread() is threading.main_thread()


class WatchedMessages(tuple[Message, ...]):
    """Messages that note where they are walked."""

    walks: list[bool]

    @override
    def __iter__(self) -> Iterator[Message]:
        self.walks.append(is_on_loop())
        return super().__iter__()


class WatchedCodec:
    """A codec that notes where it encodes."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self.encodings: list[bool] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codec, name)

    def encode(self, request: GenerationRequest, target: Target) -> WireRequest:
        self.encodings.append(is_on_loop())
        return self._codec.encode(request, target)


async def serve_large(home: House, **changes: Any) -> list[bool]:
    """Serve a large request; return for each walk over its messages whether the loop waited."""
    call = home.call("acme/large", is_large=True, stream=False)
    request = call.parsed.request
    assert isinstance(request, GenerationRequest)
    messages = WatchedMessages(changes.pop("messages", request.messages))
    messages.walks = []
    preferences = replace(request.preferences, **changes)
    request = replace(request, messages=messages, preferences=preferences)
    call = replace(call, parsed=replace(call.parsed, request=request))
    await generate(home.gateway, call, home.sink(call, home.reply()))
    return messages.walks


@pytest.mark.parametrize(
    ("near", "far", "changes"),
    [
        (HELLO, HELLO, {}),
        (HELLO, HELLO, {"require_parameters": True}),
        (REFUSED, HELLO, {}),
        (REFUSED, REFUSED, {}),
    ],
    ids=["answered", "with a survey of parameters", "by another endpoint", "refused"],
)
async def test_c9_a_large_request_is_walked_next_to_the_event_loop(
    near: Answer, far: Answer, changes: dict[str, Any]
) -> None:
    home = await house(near=Scripted(near), far=Scripted(far))
    walks = await serve_large(home, **changes)
    assert home.record.outcome == ("error" if far is REFUSED else "ok")
    assert len(walks) > 3
    assert not any(walks)


async def test_c9_media_of_a_large_request_are_put_in_next_to_the_event_loop() -> None:
    shelf = ShelvedMedia({URL: FetchedMedia(content=PNG)})
    home = await house(media=shelf, models=SEEING, routes={}, aliases={})
    content = (Text(text="Look"), Image(source=MediaUrl(url=URL)))
    walks = await serve_large(home, messages=(UserMessage(content=content),))
    assert (home.record.outcome, shelf.asked) == ("ok", [URL])
    assert not any(walks)


@pytest.mark.parametrize("length", [10, 2 * LARGE_BYTES])
async def test_c9_a_held_request_is_encoded_next_to_the_event_loop_if_it_is_large(
    length: int,
) -> None:
    codec = WatchedCodec(codec_of("openai_chat"))
    home = await house(codec=codec, models=SEEING, routes={}, aliases={})
    shop = await open_shop(Shelf())
    shop.home, shop.secret = home, home.secret
    reply = await shop.ask("x" * length, model="acme/large")
    assert reply.status == 200, reply.body
    assert codec.encodings == [length < LARGE_BYTES]


async def test_c9_a_held_conversation_is_encoded_next_to_the_event_loop() -> None:
    codec, shelf = WatchedCodec(codec_of("openai_chat")), Shelf()
    said = {"type": "message", "role": "user", "content": "x" * LARGE_BYTES}
    shelf.contents[STORED_ID] = encode_stored(b'{"output":[]}', [said])
    shop = await open_shop(shelf)
    large = await house(codec=codec, models=SEEING, routes={}, aliases={})
    shop.home.gateway = replace(
        shop.home.gateway, planner=large.gateway.planner, providers=large.gateway.providers
    )
    reply = await shop.ask("More", model="acme/large", previous_response_id=f"resp_{STORED_ID}")
    assert reply.status == 200, reply.body
    assert codec.encodings == [False]


@pytest.mark.parametrize("is_funded", [True, False])
async def test_c9_a_large_explanation_needs_credit(is_funded: bool) -> None:
    call = await api(models=SEEING, routes={}, aliases={})
    if not is_funded:
        call.home.stores.books.wallets["acme"].available = 0
    statuses = []
    for length in (10, LARGE_BYTES):
        messages = [{"role": "user", "content": "x" * length}]
        content = {"model": "acme/large", "messages": messages}
        reply = await call("POST", "/v1/route/explain", key=call.home.secret, content=content)
        statuses.append(reply.status)
    assert statuses == [200, 200 if is_funded else 402]


async def test_c9_a_failed_computation_does_not_keep_its_request() -> None:
    class Request:
        """Something large."""

    async def compute() -> weakref.ref[Request]:
        request = Request()

        def fail(large: Request = request) -> None:
            raise ValueError(json.dumps(large is None))

        with pytest.raises(ValueError, match="false"):
            await SideThread().run("acme", fail)
        return weakref.ref(request)

    gc.disable()
    try:
        kept = await compute()
        await asyncio.sleep(0)
        assert kept() is None
    finally:
        gc.enable()
