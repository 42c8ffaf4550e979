"""C82: transcripts from the request to the bill, by seconds or by tokens.

Keeps C26, C41, C66, C68, C82.
"""

import json
from typing import Any

import pytest
from msgspec.structs import replace
from urllib3.filepost import encode_multipart_formdata

from tests.gateways import ShelvedMedia
from tests.memory.files import shelved
from tests.scripted import frame, refuses
from tests.unit.engine.scribes import (
    FULL,
    SEGMENTS,
    SOUND,
    STREAM,
    TEXT,
    TOKENS,
    URL,
    VERBOSE,
    WORDS,
    home_of_scribes,
    post,
    sent_form,
    write_down,
)
from tests.unit.ingress.media_samples import PNG, b64, data_url
from tests.unit.ingress.recordings import mp3
from tollgate.core.work.recording import RECORDING_BYTES_MAX
from tollgate.ingress.formats import TRANSCRIPTIONS, TRANSLATIONS
from tollgate.providers.ports.base import FetchedMedia, Frame

END_MARK = Frame(data=b"[DONE]")


async def test_c26_c66_c82_a_transcript_is_billed_by_the_seconds_that_are_reported() -> None:
    home = await home_of_scribes([frame(VERBOSE)])
    reply = await write_down(home, language="en", prompt="Names: Ada", temperature="0.2", x="y")
    assert reply.status == 200
    assert reply.json == {"text": TEXT, "usage": {"type": "duration", "seconds": 12}}
    assert reply.headers["x-tollgate-adapted"] == "x"
    record = home.record
    assert (record.trace.kind, record.ingress_format) == ("transcription", TRANSCRIPTIONS.name)
    assert (record.usage.audio_seconds, record.usage_source) == (12, "provider")
    # 12 s at 0.0001 dollars.
    assert record.cost_nano_usd == home.spent_nano_usd == 1_200_000
    [wire] = home.near.requests
    assert (wire.path, wire.reply_bytes_max) == ("/audio/transcriptions", 16 * 1024 * 1024)
    assert [part.file_name for part in wire.form if part.name == "file"] == ["recording.wav"]
    assert sent_form(home) == {
        "model": [b"t-1"],
        "language": [b"en"],
        "prompt": [b"Names: Ada"],
        "temperature": [b"0.2"],
        "response_format": [b"verbose_json"],
        "file": [SOUND],
    }


@pytest.mark.parametrize(
    ("file", "reported", "seconds", "source"),
    [
        # A WAV file has 12 s and no more.
        (SOUND, {"usage": {"type": "duration", "seconds": 11.2}}, 12, "provider"),
        (SOUND, {"duration": "11.5"}, 12, "provider"),
        (SOUND, {"duration": 900}, 12, "bounded"),
        (SOUND, {}, 12, "estimated"),
        (SOUND, {"duration": -3}, 12, "estimated"),
        (SOUND, {"duration": True}, 12, "estimated"),
        # An MP3 file is taken for 27 s, and may have 417.
        (mp3(1_000), {}, 27, "estimated"),
        (mp3(1_000), {"duration": 300.5}, 301, "provider"),
        (mp3(1_000), {"duration": 10_000}, 417, "bounded"),
    ],
)
async def test_c82_seconds_are_reported_checked_and_estimated(
    file: bytes, reported: dict[str, object], seconds: int, source: str
) -> None:
    home = await home_of_scribes([frame({"text": "a", **reported})])
    assert (await write_down(home, file=file)).json["usage"]["seconds"] == seconds
    record = home.record
    assert (record.usage.audio_seconds, record.usage_source) == (seconds, source)
    assert record.cost_nano_usd == seconds * 100_000 <= record.held_nano_usd


async def test_c26_c82_tokens_are_billed_by_their_rates() -> None:
    rates = {"input": "1", "audio_input": "6", "output": "10"}
    home = await home_of_scribes([frame({"text": "a", "usage": TOKENS})], rates=rates)
    assert (await write_down(home)).json["usage"] == TOKENS
    assert home.spent_nano_usd == 10 * 1_000 + 120 * 6_000 + 9 * 10_000
    assert home.record.held_nano_usd >= home.spent_nano_usd


@pytest.mark.parametrize(
    ("response_format", "type_", "body"),
    [
        ("text", "text/plain; charset=utf-8", f"{TEXT}\n"),
        (
            "srt",
            "text/plain; charset=utf-8",
            (
                "1\n00:00:00,000 --> 00:00:07,250\nGood morning.\n\n"
                "2\n00:00:07,250 --> 00:00:11,500\nSee you -> soon.\n\n"
            ),
        ),
        (
            "vtt",
            "text/vtt; charset=utf-8",
            (
                "WEBVTT\n\n00:00:00.000 --> 00:00:07.250\nGood morning.\n\n"
                "00:00:07.250 --> 00:00:11.500\nSee you -> soon.\n\n"
            ),
        ),
    ],
)
async def test_c82_texts_and_subtitles_are_made_of_segments(
    response_format: str, type_: str, body: str
) -> None:
    home = await home_of_scribes([frame(VERBOSE)])
    reply = await write_down(home, response_format=response_format)
    assert (reply.headers["content-type"], reply.body.decode()) == (type_, body)
    assert reply.headers["x-credits-used"] == "0.0012"


@pytest.mark.parametrize("text", ["a --> b", "a ---> b", "a -----> b", "a -->--> b"])
@pytest.mark.parametrize("response_format", ["srt", "vtt"])
async def test_c82_no_words_of_a_subtitle_read_as_a_time(response_format: str, text: str) -> None:
    verbose = {"text": text, "duration": 1, "segments": [{"start": 0, "end": 1, "text": text}]}
    home = await home_of_scribes([frame(verbose)])
    reply = await write_down(home, response_format=response_format)
    assert reply.body.count(b"-->") == 1


@pytest.mark.parametrize(
    ("fields", "granularities", "shown"),
    [
        ({}, None, {"segments"}),
        ({"timestamp_granularities[]": "segment"}, None, {"segments"}),
        ({"timestamp_granularities[]": "word"}, [b"word"], {"words"}),
    ],
)
async def test_c82_verbose_json_has_the_parts_that_were_requested(
    fields: dict[str, str], granularities: list[bytes] | None, shown: set[str]
) -> None:
    home = await home_of_scribes([frame(VERBOSE)])
    body = (await write_down(home, response_format="verbose_json", **fields)).json
    usage = {"type": "duration", "seconds": 12}
    parts = {"segments": SEGMENTS, "words": WORDS}
    assert body == {
        "task": "transcribe",
        "language": "english",
        "duration": 11.5,
        "text": TEXT,
        "usage": usage,
        **{name: parts[name] for name in shown},
    }
    assert sent_form(home).get("timestamp_granularities[]") == granularities


async def test_c82_a_translation_goes_to_its_own_path() -> None:
    home = await home_of_scribes([frame(VERBOSE)])
    reply = await write_down(home, path=TRANSLATIONS.path, response_format="verbose_json")
    assert (reply.json["task"], home.record.ingress_format) == ("translate", TRANSLATIONS.name)
    assert home.near.requests[0].path == "/audio/translations"


async def test_c82_words_are_streamed_as_their_provider_streams_them() -> None:
    rates = {"input": "1", "output": "10"}
    home = await home_of_scribes(STREAM, dialect={"streams": True}, rates=rates)
    reply = await write_down(home, stream="true")
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    events = [json.loads(each.removeprefix(b"data: ")) for each in reply.body.split(b"\n\n")[:-1]]
    assert [event.get("delta") for event in events] == ["Good ", "morning.", None]
    assert events[-1] == {
        "type": "transcript.text.done",
        "text": "Good morning.",
        "usage": {**TOKENS, "cost": 0.00022},
        "credits_used": 0.00022,
        "model_used": "acme/ear",
        "provider_used": "near",
    }
    assert sent_form(home)["stream"] == [b"true"]
    assert sent_form(home)["response_format"] == [b"json"]


async def test_c82_what_comes_after_the_end_of_a_transcript_is_not_read() -> None:
    home = await home_of_scribes([*STREAM, *STREAM, END_MARK], dialect={"streams": True})
    reply = await write_down(home, stream="true")
    events = [json.loads(each[6:]) for each in reply.body.split(b"\n\n") if each]
    assert [each["type"].rpartition(".")[2] for each in events] == ["delta", "delta", "done"]


@pytest.mark.parametrize("odd", [END_MARK, frame("words"), frame([])])
async def test_c82_a_stream_of_another_shape_is_served_elsewhere(odd: Frame) -> None:
    home = await home_of_scribes([odd], far=[frame(VERBOSE)], dialect={"streams": True})
    reply = await write_down(home, stream="true")
    assert reply.headers["x-fallback-from"] == "acme/ear"


@pytest.mark.parametrize("streams", [False, True])
async def test_c82_a_server_that_does_not_stream_answers_in_one_event(streams: bool) -> None:
    home = await home_of_scribes([frame(VERBOSE)], dialect={"streams": streams})
    reply = await write_down(home, stream="true")
    delta, done, _ = reply.body.split(b"\n\n")
    assert json.loads(delta.removeprefix(b"data: "))["delta"] == TEXT
    assert json.loads(done.removeprefix(b"data: "))["text"] == TEXT


async def test_c33_c82_a_stream_that_breaks_ends_in_an_error_and_costs_nothing() -> None:
    home = await home_of_scribes(STREAM[:1], dialect={"streams": True})
    reply = await write_down(home, stream="true")
    failed = json.loads(reply.body.split(b"\n\n")[-2].removeprefix(b"data: "))
    assert (failed["type"], failed["error"]["code"]) == ("error", "provider_unavailable")
    assert home.spent_nano_usd == 0


async def test_c82_speakers_are_named_where_a_model_knows_them() -> None:
    stretch = {"type": "transcript.text.segment", "id": "s1", "start": 0.0, "end": 1.5}
    said = {**stretch, "text": "Hi", "speaker": "A"}
    whole = {"task": "transcribe", "duration": 1.5, "text": "Hi", "segments": [said]}
    home = await home_of_scribes(
        [frame(whole)], [frame(said), frame({"type": "transcript.text.done", "text": "Hi"})],
        dialect={"speakers": True, "segments": False, "streams": True, "chunking": True},
    )  # fmt: skip
    body = (await write_down(home, response_format="diarized_json")).json
    assert body == {**whole, "usage": {"type": "duration", "seconds": 2}}
    assert sent_form(home)["chunking_strategy"] == [b"auto"]
    reply = await write_down(home, response_format="diarized_json", stream="true")
    assert json.loads(reply.body.split(b"\n\n")[0].removeprefix(b"data: ")) == said


async def test_c82_what_one_endpoint_lacks_another_has() -> None:
    home = await home_of_scribes([frame(VERBOSE)], far=[frame(VERBOSE)], dialect={"words": False})
    fields = {"response_format": "verbose_json", "timestamp_granularities[]": "word"}
    assert (await write_down(home, **fields)).headers["x-model-used"] == "acme/spare"
    reply = await write_down(home, model="acme/ear", **fields)
    assert reply.error["param"] == "timestamp_granularities"
    reply = await write_down(home, path=TRANSLATIONS.path, model="acme/ear")
    assert reply.error["message"].startswith("acme/ear does not take translation")
    assert home.near.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        {"text": TEXT},
        {"text": TEXT, "segments": [{"start": -1.0, "end": 0.0, "text": "a"}]},
        {"text": TEXT, "segments": [{"start": 0.0, "text": "a"}]},
        {"segments": SEGMENTS},
        {"text": 7},
        [],
        {"error": {"message": "no", "type": "server_error"}},
    ],
)
async def test_c82_a_transcript_that_is_none_is_served_elsewhere(answer: Any) -> None:
    home = await home_of_scribes([frame(answer)], far=[frame(VERBOSE)])
    reply = await write_down(home, response_format="srt")
    assert reply.headers["x-fallback-from"] == "acme/ear"
    assert home.spent_nano_usd == 1_200_000


async def test_c50_c82_an_overloaded_endpoint_is_retried_and_then_another_serves() -> None:
    home = await home_of_scribes(refuses(529), far=[frame(VERBOSE)])
    assert (await write_down(home)).headers["x-fallback-from"] == "acme/ear"


async def test_c82_what_a_server_does_not_take_is_reported() -> None:
    fields = {"include[]": "logprobs", "chunking_strategy": "auto", "prompt": "p"}
    home = await home_of_scribes([frame(VERBOSE)], dialect={"prompt": False})
    reply = await write_down(home, **fields)
    assert reply.headers["x-tollgate-adapted"] == "prompt, include, chunking_strategy"
    probable = {"text": "a", "logprobs": [{"token": "a", "logprob": -0.5, "bytes": [97]}]}
    home = await home_of_scribes([frame(probable)], dialect={**FULL, "segments": False})
    reply = await write_down(home, **fields)
    assert reply.json["logprobs"] == probable["logprobs"]
    assert sent_form(home)["include[]"] == [b"logprobs"]


async def test_c20_c82_files_that_are_not_read_are_named() -> None:
    home = await home_of_scribes([frame(VERBOSE)])
    fields = {"model": "ears", "file": ("a.wav", SOUND), "speaker": ("b.wav", SOUND), "odd": "1"}
    body, type_ = encode_multipart_formdata(fields)
    reply = await post(home, TRANSCRIPTIONS.path, body, type_, {})
    assert (reply.status, reply.headers["x-tollgate-adapted"]) == (200, "odd, speaker")


async def test_c82_a_recording_is_fetched_from_its_address_once() -> None:
    media = ShelvedMedia({URL: FetchedMedia(content=SOUND)})
    home = await home_of_scribes(refuses(529), far=[frame(VERBOSE)], media=media)
    reply = await write_down(home, file=None, url=URL, response_format="verbose_json")
    assert (reply.status, media.asked) == (200, [URL])
    assert home.record.usage.audio_seconds == 12
    assert "files.example" not in repr(home.record)


async def test_c70_c82_an_uploaded_recording_is_named_by_its_id() -> None:
    home = await home_of_scribes(refuses(529), far=[frame(VERBOSE)])
    files = shelved("acme", talk=("audio/wav", SOUND), cat=("image/png", PNG))
    home.gateway = replace(home.gateway, files=files)
    reply = await write_down(home, file=None, file_id="talk", response_format="verbose_json")
    assert (reply.status, files.read_places) == (200, ["files/kept/talk"])
    assert home.record.usage.audio_seconds == 12
    for refused, code in (("other", "file_not_found"), ("cat", "invalid_request")):
        reply = await write_down(home, file=None, file_id=refused)
        assert (reply.status, reply.error["code"]) == (400, code)
        assert reply.error["param"] == "file_id"


async def test_c8_c82_an_uploaded_recording_has_the_limit_of_any_other() -> None:
    home = await home_of_scribes([frame(VERBOSE)])
    files = shelved("acme", talk=("audio/wav", SOUND + bytes(RECORDING_BYTES_MAX)))
    home.gateway = replace(home.gateway, files=files)
    reply = await write_down(home, file=None, file_id="talk")
    assert (reply.status, reply.error["param"], files.read_places) == (413, "file_id", [])


@pytest.mark.parametrize(
    "input_",
    [{"url": URL}, {"file": b64(SOUND)}, {"file": data_url(SOUND, "audio/wav")}],
    ids=["url", "base64", "data"],
)
async def test_c82_a_recording_may_come_in_json(input_: dict[str, str]) -> None:
    media = ShelvedMedia({URL: FetchedMedia(content=SOUND)})
    home = await home_of_scribes([frame(VERBOSE)], media=media)
    body = json.dumps({"model": "ears", "temperature": 0.5, **input_}).encode()
    reply = await post(home, TRANSCRIPTIONS.path, body, "application/json", {})
    assert (reply.status, reply.json["text"]) == (200, TEXT)
