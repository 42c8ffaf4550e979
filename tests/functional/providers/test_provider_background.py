"""Background responses of a provider over a socket.

Keeps C84.
"""

import json

import pytest

from tests.functional.providers.one_provider import CHAT, OneProvider
from tests.upstream import FakeUpstream, Script
from tollgate.core.errors import UpstreamError
from tollgate.providers.ports.background import ProviderBackground, ResponseGone
from tollgate.providers.ports.provider_batches import NotAccepted

PATH = "/responses"
BODY = {"model": "m:1", "input": [], "stream": True, "store": False}
USAGE = {"input_tokens": 9, "output_tokens": 3}


def background_of(provider: OneProvider, **facts: object) -> ProviderBackground:
    found = provider.provider(CHAT, background=True, **facts).background
    assert found is not None
    return found()


def ok(body: object) -> Script:
    return Script.json(200, body)


async def test_c84_a_response_is_created_in_background_and_stored(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    background = background_of(provider)
    upstream.enqueue(ok({"id": "resp_1", "status": "queued"}))
    assert await background.submit(PATH, BODY, {}) == "resp_1"
    [sent] = upstream.received
    assert (sent.method, sent.path) == ("POST", PATH)
    assert sent.headers["authorization"] == "Bearer sk-secret"
    assert sent.json == {"model": "m:1", "input": [], "store": True, "background": True}


async def test_c84_a_response_is_polled_cancelled_and_deleted(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    background = background_of(provider)
    # The decoder of the answer refuses an output or usage of another form.
    ended = {"id": "resp_1", "status": "completed", "output": "no list", "usage": ["none"]}
    upstream.enqueue(*(ok({"id": "resp_1", "status": it}) for it in ("queued", "in_progress")))
    assert await background.read(PATH, "resp_1") is None
    assert await background.read(PATH, "resp_1") is None
    upstream.enqueue(ok(ended))
    assert json.loads(await background.read(PATH, "resp_1") or b"") == ended
    upstream.enqueue(ok({"id": "resp_1", "status": "cancelled"}), Script.json(400, {"error": {}}))
    await background.cancel(PATH, "resp_1")
    await background.cancel(PATH, "resp_1")
    upstream.enqueue(ok({"deleted": True}), Script.json(404, {"error": {}}))
    await background.delete(PATH, "resp_1")
    await background.delete(PATH + "?api-version=v1", "resp_1")
    assert [f"{it.method} {it.path}" for it in upstream.received] == [
        *["GET /responses/resp_1"] * 3,
        *["POST /responses/resp_1/cancel"] * 2,
        "DELETE /responses/resp_1",
        "DELETE /responses/resp_1?api-version=v1",
    ]


async def test_c84_a_cancelled_response_is_incomplete_with_what_it_used_or_wrote(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    background = background_of(provider)
    cancelled = {"id": "resp_1", "status": "cancelled", "output": [], "usage": None}
    written = [{"type": "message", "content": [{"type": "output_text", "text": "Hel"}]}]
    for known in ({"usage": USAGE}, {"output": written}):
        upstream.enqueue(ok({**cancelled, **known}))
        found = json.loads(await background.read(PATH, "resp_1") or b"")
        assert found["status"] == "incomplete"
        assert known.items() <= found.items()
    upstream.enqueue(ok(cancelled))
    assert await background.read(PATH, "resp_1") == b""


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
async def test_c84_a_refusal_is_certain(
    status: int, upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(Script.json(status, {"error": {"message": "background is not supported"}}))
    with pytest.raises(NotAccepted):
        await background_of(provider).submit(PATH, BODY, {})


async def test_c84_what_was_never_sent_is_certain_and_a_lost_reply_is_not(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    with pytest.raises(NotAccepted):
        await background_of(provider, base_url="http://127.0.0.1:9").submit(PATH, BODY, {})
    for unclear in (Script(before_headers="close"), ok({"id": "../models"})):
        upstream.enqueue(unclear)
        with pytest.raises(UpstreamError):
            await background_of(provider).submit(PATH, BODY, {})


@pytest.mark.parametrize(("status", "error"), [(404, ResponseGone), (500, UpstreamError)])
async def test_c84_a_response_is_gone_only_if_the_provider_says_so(
    status: int, error: type[Exception], upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(Script.json(status, {"error": {}}))
    with pytest.raises(error):
        await background_of(provider).read(PATH, "resp_1")
