"""C82: speech from the request to the record.

Keeps C33, C36, C41, C66, C82.
"""

import asyncio
import json
from base64 import b64decode, b64encode
from typing import Any

import pytest

from tests.asgi import Exchange, exchange, request
from tests.cells import cells
from tests.gateways import Always, House, house
from tests.scripted import FOREVER, Answer, Scripted, Silence, frame, refuses
from tests.unit.engine.test_single_call import Contents
from tests.unit.routing.catalogs import model, price, provider
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.idempotency import Claim
from tollgate.engine.replies.kept_answers import RESULT_BYTES_KEPT_MAX
from tollgate.ingress.formats import SPEECH
from tollgate.providers.ports.base import Frame
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

TEXT = "Héllo!"
CHUNKS = (b"ID3\x04", b"\x00\xff", b"[DONE]", b": keep-alive\n")
BROKEN = UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "The connection broke.")
BY_CHARACTERS = price("0", "0", characters="10")
BY_TOKENS = price("1", "12")
EVENTS = {"usage": "events", "instructions": True}


class OneAnswer:
    """A store of one answer."""

    def __init__(self) -> None:
        self.kept: bytes | None = None

    async def claim(self, claim: Claim) -> bytes | None:
        return self.kept

    async def keep(self, claim: Claim, answer: bytes) -> None:
        self.kept = answer

    async def release(self, claim: Claim) -> None:
        """Nothing is claimed."""


def sound(*chunks: bytes) -> list[Frame]:
    return [Frame(data=chunk) for chunk in chunks]


def delta(piece: bytes) -> Frame:
    return frame({"type": "speech.audio.delta", "audio": b64encode(piece).decode()})


def done(**usage: int) -> Frame:
    return frame({"type": "speech.audio.done", "usage": usage})


async def home_of_voices(
    *near: Answer,
    far: Answer | None = None,
    key: NewKey | None = None,
    rates: dict[str, Any] = BY_CHARACTERS,
    dialect: dict[str, Any] | None = None,
) -> House:
    offers = [
        {
            "provider": slug,
            "upstream": "v-1",
            "price": {name: rate for name, rate in rates.items() if rate or name != "output"},
            "dialect": {"speech": dialect or {}},
        }
        for slug in ("near", "far")
    ]
    section = model(*offers, kind="speech", context=4_096)
    del section["max_output"]
    return await house(
        near=Scripted(*near),
        far=Scripted(far) if far else None,
        providers={"near": provider(), "far": provider()},
        models={"acme/voice": section},
        key=key,
        aliases={},
        routes={},
    )


def asked(home: House, *, headers: dict[str, str] | None = None, **fields: Any) -> Exchange:
    body = {"model": "acme/voice", "input": TEXT, "voice": "alloy", **fields}
    return exchange(
        "POST",
        SPEECH.path,
        headers={"authorization": f"Bearer {home.secret}", **(headers or {})},
        body=json.dumps(body).encode(),
    )


async def speak(home: House, **fields: Any) -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    return await asyncio.wait_for(asked(home, **fields).run(app), timeout=10_000)


def events(reply: Exchange) -> list[dict[str, Any]]:
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    *frames, rest = reply.body.split(b"\n\n")
    assert rest == b""
    return [json.loads(each.removeprefix(b"data: ")) for each in frames]


async def test_c66_c82_sound_is_passed_on_as_it_is_and_billed_by_characters() -> None:
    home = await home_of_voices(sound(*CHUNKS))
    reply = await speak(home)
    record = home.record
    assert (reply.status, reply.body, reply.complete) == (200, b"".join(CHUNKS), True)
    assert reply.headers["content-type"] == "audio/mpeg"
    assert reply.headers["x-generation-id"] == f"gen-{record.id}"
    assert (record.trace.kind, record.outcome, record.usage_source) == ("speech", "ok", "provider")
    assert record.usage.characters == len(TEXT)
    assert record.cost_nano_usd == home.spent_nano_usd == len(TEXT) * 10_000
    assert [(line.item, line.quantity) for line in record.lines] == [("character", len(TEXT))]
    [sent] = home.near.requests
    body = {"model": "v-1", "input": TEXT, "voice": "alloy", "response_format": "mp3"}
    assert (sent.path, sent.is_raw, sent.body) == ("/audio/speech", True, body)


@pytest.mark.parametrize("form", ["mp3", "opus", "aac", "flac", "wav", "pcm"])
async def test_c82_the_content_type_is_that_of_the_sound(form: str) -> None:
    home = await home_of_voices(sound(b"x"))
    reply = await speak(home, response_format=form)
    assert reply.headers["content-type"] == f"audio/{'mpeg' if form == 'mp3' else form}"
    assert home.near.requests[0].body["response_format"] == form


@pytest.mark.parametrize("upstream", ["raw", "events"])
async def test_c82_events_are_rendered_whichever_way_the_provider_speaks(upstream: str) -> None:
    in_events = upstream == "events"
    answer = (
        [delta(b"one"), delta(b"two"), done(input_tokens=7, output_tokens=20)]
        if in_events
        else sound(b"one", b"two")
    )
    home = await home_of_voices(
        answer,
        rates=BY_TOKENS if in_events else BY_CHARACTERS,
        dialect=EVENTS if in_events else None,
    )
    first, second, last = events(await speak(home, stream_format="sse"))
    assert [b64decode(each["audio"]) for each in (first, second)] == [b"one", b"two"]
    cost = (7 * 1_000 + 20 * 12_000) if in_events else len(TEXT) * 10_000
    tokens = (7, 20) if in_events else (0, 0)
    assert last.pop("type") == "speech.audio.done"
    assert last["usage"] == {
        "input_tokens": tokens[0],
        "output_tokens": tokens[1],
        "total_tokens": sum(tokens),
        "characters": len(TEXT),
        "cost": cost / 1e9,
    }
    assert home.record.cost_nano_usd == cost


async def test_c82_tokens_are_billed_exactly_for_bytes_too_if_the_provider_has_events() -> None:
    answer = [delta(b"one"), delta(b"two"), done(input_tokens=7, output_tokens=20)]
    home = await home_of_voices(answer, rates=BY_TOKENS, dialect=EVENTS)
    reply = await speak(home, instructions="Slowly.", speed=0.5)
    record = home.record
    assert (reply.body, reply.headers["content-type"]) == (b"onetwo", "audio/mpeg")
    assert (record.cost_nano_usd, record.usage_source) == (7 * 1_000 + 20 * 12_000, "provider")
    assert record.raw_usage == {"input_tokens": 7, "output_tokens": 20}
    [sent] = home.near.requests
    assert not sent.is_raw
    assert sent.body["stream_format"] == "sse"
    assert (sent.body["instructions"], sent.body["speed"]) == ("Slowly.", 0.5)


async def test_c82_tokens_that_nobody_states_are_an_estimate_that_says_so() -> None:
    home = await home_of_voices(sound(b"x"), rates=BY_TOKENS, dialect={"usage": "none"})
    await speak(home)
    record = home.record
    assert record.usage_source == "estimated"
    assert 0 < record.cost_nano_usd <= record.held_nano_usd


async def test_c36_c82_a_client_that_leaves_pays_the_tokens_of_the_bytes_that_it_got() -> None:
    second = b"\x00" * 48_000
    home = await home_of_voices([delta(second), FOREVER], rates=BY_TOKENS, dialect=EVENTS)
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    sent = asked(home, input="a" * 4_096, response_format="pcm")
    asyncio.get_running_loop().call_later(1, sent.leave)
    await sent.run(app)
    record = home.record
    assert (record.outcome, record.usage_source) == ("cancelled", "estimated")
    assert record.usage.output_tokens == 20
    assert record.cost_nano_usd == home.spent_nano_usd == (1_024 * 1 + 20 * 12) * 1_000


async def test_c82_tokens_above_the_bound_are_not_believed() -> None:
    answer = [delta(b"x"), done(input_tokens=7, output_tokens=1_000_000)]
    home = await home_of_voices(answer, rates=BY_TOKENS, dialect=EVENTS)
    await speak(home)
    assert home.record.usage_source == "bounded"
    assert home.record.cost_nano_usd <= home.record.held_nano_usd


@pytest.mark.parametrize("dialect", [{}, {"instructions": True, "speed": False}])
async def test_c82_what_the_server_does_not_take_is_named(dialect: dict[str, Any]) -> None:
    home = await home_of_voices(sound(b"x"), dialect=dialect)
    reply = await speak(home, instructions="Slowly.", speed=2, mood="good")
    left_out = "speed" if dialect else "instructions"
    assert reply.headers["x-tollgate-adapted"] == f"mood, {left_out}"
    assert left_out not in home.near.requests[0].body


async def test_c82_a_voice_of_ones_own_is_sent_by_its_id() -> None:
    home = await home_of_voices(sound(b"x"))
    await speak(home, voice={"id": "voice_1"})
    assert home.near.requests[0].body["voice"] == {"id": "voice_1"}


@pytest.mark.parametrize(
    "failing",
    [
        refuses(500),
        refuses(429),
        [BROKEN],
        [],
        [frame({"type": "error", "error": {"message": "no"}})],
        [Frame(data=b"ID3 and so on")],
        [frame({"type": "speech.audio.delta", "audio": "no base64!"})],
        [delta(b""), done(input_tokens=1, output_tokens=0)],
    ],
)
async def test_c82_a_provider_that_fails_before_any_sound_is_replaced(failing: Answer) -> None:
    good = [delta(b"fine"), done(input_tokens=1, output_tokens=2)]
    home = await home_of_voices(failing, far=good, rates=BY_TOKENS, dialect=EVENTS)
    reply = await speak(home)
    assert (reply.body, reply.complete) == (b"fine", True)
    assert reply.headers["x-provider-used"] == "far"
    assert home.record.attempts[0].error is not None


@pytest.mark.parametrize("upstream", ["raw", "events", "early end"])
async def test_c33_c82_sound_that_breaks_is_no_whole_reply_and_costs_nothing(
    upstream: str,
) -> None:
    in_events = upstream != "raw"
    answer: Answer = {
        "raw": [*sound(b"one"), BROKEN],
        "events": [delta(b"one"), frame({"type": "error", "error": {"message": "no"}})],
        "early end": [delta(b"one")],
    }[upstream]
    home = await home_of_voices(answer, dialect=EVENTS if in_events else None)
    reply = await speak(home)
    assert (reply.status, reply.body, reply.complete) == (200, b"one", False)
    record = home.record
    assert (record.outcome, record.error) == ("error", "provider_unavailable")
    assert record.cost_nano_usd == home.spent_nano_usd == 0
    assert home.journal.defects == []


async def test_c33_c82_events_that_break_end_with_an_error_event() -> None:
    home = await home_of_voices([*sound(b"one"), BROKEN])
    reply = await speak(home, stream_format="sse")
    assert reply.complete
    first, last = events(reply)
    assert first["type"] == "speech.audio.delta"
    assert (last["type"], last["error"]["code"]) == ("error", "provider_unavailable")
    assert last["usage"]["cost"] == 0


async def test_c34_c82_a_deadline_in_the_middle_is_billed_and_no_whole_reply() -> None:
    home = await home_of_voices([*sound(b"one"), FOREVER])
    reply = await speak(home)
    assert (reply.body, reply.complete) == (b"one", False)
    assert home.record.error == "provider_timeout"


async def test_c36_c82_a_client_that_leaves_pays_what_was_delivered_once() -> None:
    home = await home_of_voices([*sound(b"one"), FOREVER])
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    sent = asked(home)
    asyncio.get_running_loop().call_later(1, sent.leave)
    await sent.run(app)
    record = home.record
    assert (record.outcome, sent.body, sent.complete) == ("cancelled", b"one", False)
    assert record.cost_nano_usd == home.spent_nano_usd == len(TEXT) * 10_000


async def test_c32_c82_nothing_is_written_into_sound_however_long_it_pauses() -> None:
    home = await home_of_voices([*sound(b"one"), Silence(100), *sound(b"two")])
    assert (await speak(home)).body == b"onetwo"
    spoken = await home_of_voices([*sound(b"one"), Silence(100), *sound(b"two")])
    assert b": keep-alive\n" in (await speak(spoken, stream_format="sse")).body


async def test_c68_c82_a_repeated_request_gets_the_kept_sound() -> None:
    home = await home_of_voices(sound(*CHUNKS))
    app = chat_app(home.front, Always(home.gateway), WebLimits(), answers=OneAnswer())
    headers = {"idempotency-key": "once"}
    first, again = [await asked(home, headers=headers).run(app) for _ in range(2)]
    assert first.body == again.body == b"".join(CHUNKS)
    assert again.headers["x-idempotent-replay"] == "true"
    assert again.headers["content-type"] == "audio/mpeg"
    assert len(home.near.requests) == 1
    assert home.spent_nano_usd == home.record.cost_nano_usd


async def test_c69_c82_content_that_is_kept_is_the_text_and_no_sound() -> None:
    contents = Contents()
    key = NewKey(workspace_id="acme", label="kept", content_days=1)
    home = await home_of_voices(sound(*CHUNKS), key=key)
    app = chat_app(home.front, Always(home.gateway), WebLimits(), contents=contents)
    await asked(home).run(app)
    [content] = contents.kept.values()
    assert content["request"]["input"] == TEXT
    assert content["choices"] == [[]]


async def test_c68_c82_sound_that_is_too_large_to_be_kept_is_sent_all_the_same() -> None:
    large = bytes(RESULT_BYTES_KEPT_MAX)
    home, answers = await home_of_voices(sound(large, b"more")), OneAnswer()
    app = chat_app(home.front, Always(home.gateway), WebLimits(), answers=answers)
    reply = await asked(home, headers={"idempotency-key": "once"}).run(app)
    assert (len(reply.body), reply.complete) == (len(large) + 4, True)
    assert answers.kept is None


@cells(
    ("fields", "param"),
    [
        ({"model": None}, "model"),
        ({"input": None}, "input"),
        ({"input": ""}, "input"),
        ({"input": ["a"]}, "input"),
        ({"input": 7}, "input"),
        ({"input": "a" * 4_097}, "input"),
        ({"input": "a" * 65_537}, "input"),
        ({"voice": None}, "voice"),
        ({"voice": ""}, "voice"),
        ({"voice": ["alloy"]}, "voice"),
        ({"voice": {}}, "voice.id"),
        ({"voice": {"id": 7}}, "voice.id"),
        ({"voice": "a" * 257}, "voice"),
        ({"instructions": 7}, "instructions"),
        ({"instructions": "a" * 4_097}, "instructions"),
        ({"response_format": "ogg"}, "response_format"),
        ({"response_format": ["mp3"]}, "response_format"),
        ({"speed": 0.2}, "speed"),
        ({"speed": 4.1}, "speed"),
        ({"speed": "1"}, "speed"),
        ({"speed": True}, "speed"),
        ({"speed": float("nan")}, None),
        ({"stream_format": "raw"}, "stream_format"),
        ({"stream_format": True}, "stream_format"),
    ],
)
async def test_c41_c82_bad_input_names_its_field_and_spends_nothing(
    fields: dict[str, Any], param: str | None
) -> None:
    home = await home_of_voices(sound(b"x"))
    reply = await speak(home, **fields)
    assert (reply.status, reply.error["param"]) == (400, param)
    assert home.stores.books.records == {}
    assert home.near.requests == []


async def test_c41_c82_a_form_that_no_endpoint_makes_is_refused() -> None:
    home = await home_of_voices(sound(b"x"), dialect={"sounds": ("wav",)})
    reply = await speak(home)
    assert (reply.status, reply.error["param"]) == (400, "response_format")
    assert (await speak(home, response_format="wav")).status == 200


async def test_c82_a_text_is_spoken_where_it_is_not_too_long() -> None:
    home = await home_of_voices(sound(b"x"), dialect={"characters_max": 5})
    reply = await speak(home)
    assert (reply.status, reply.error["param"]) == (400, "input")
    assert "6 characters" in reply.error["message"]


async def test_c82_speech_is_not_what_a_model_that_chats_does() -> None:
    home = await house()
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    reply = await request(
        app,
        "POST",
        SPEECH.path,
        headers={"authorization": f"Bearer {home.secret}"},
        body=b'{"model": "acme/large", "input": "a", "voice": "b"}',
    )
    assert (reply.status, reply.error["param"]) == (400, "model")
    assert "/chat/completions" in reply.error["message"]
