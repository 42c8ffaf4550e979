"""Gateways whose scripted providers write down recordings, and requests to them."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from urllib3.filepost import encode_multipart_formdata

from tests.asgi import Exchange, request
from tests.gateways import Always, House, ShelvedMedia, house
from tests.scripted import Scripted, frame
from tests.unit.ingress.recordings import wav
from tests.unit.routing.catalogs import model, price, provider
from tollgate.ingress.formats import TRANSCRIPTIONS
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

SOUND = wav(16_000 * 12)
URL = "https://files.example/a.wav?signature=x"
SEGMENTS = [
    {"id": 0, "start": 0.0, "end": 7.25, "text": " Good morning.", "avg_logprob": -0.25},
    {"id": 1, "start": 7.25, "end": 11.5, "text": " See you --> soon.\n"},
]
WORDS = [{"word": "Good", "start": 0.0, "end": 0.5}]
TEXT = "Good morning. See you --> soon."
VERBOSE = {
    "task": "transcribe",
    "language": "english",
    "duration": 11.5,
    "text": TEXT,
    "segments": SEGMENTS,
    "words": WORDS,
}
TOKENS = {
    "type": "tokens",
    "input_tokens": 130,
    "input_token_details": {"audio_tokens": 120, "text_tokens": 10},
    "output_tokens": 9,
    "total_tokens": 139,
}
STREAM = [
    frame({"type": "transcript.text.delta", "delta": "Good "}),
    frame({"type": "transcript.text.delta", "delta": "morning."}),
    frame({"type": "transcript.text.done", "text": "Good morning.", "usage": TOKENS}),
]
FULL = {"words": True, "translates": True, "logprobs": True, "chunking": True}


def scribe(slug: str, dialect: Mapping[str, Any], rates: Mapping[str, str]) -> dict[str, object]:
    stated = {"input": "0", **(rates or {"audio_hour": "0.36"})}
    kept = {name: each for name, each in price("0").items() if name in ("source", "checked")}
    offer = {
        "provider": slug,
        "upstream": "t-1",
        "price": kept | {name: Decimal(rate) for name, rate in stated.items()},
        "dialect": {"transcription": dict(dialect)},
    }
    section = model(offer, kind="transcription", context=16_000) | {"input": ("audio",)}
    del section["max_output"]
    return section


async def home_of_scribes(
    *near: Any,
    far: Any = None,
    dialect: Mapping[str, Any] = FULL,
    rates: Mapping[str, str] | None = None,
    media: ShelvedMedia | None = None,
) -> House:
    return await house(
        near=Scripted(*near),
        far=Scripted(far) if far else None,
        media=media,
        providers={"near": provider(), "far": provider()},
        models={
            "acme/ear": scribe("near", dialect, rates or {}),
            "acme/spare": scribe("far", FULL, rates or {}),
        },
        aliases={},
        routes={"ears": {"description": "Two", "try": ("acme/ear", "acme/spare")}},
    )


async def write_down(
    home: House,
    *,
    path: str = TRANSCRIPTIONS.path,
    file: bytes | None = SOUND,
    headers: Mapping[str, str] | None = None,
    **fields: str,
) -> Exchange:
    parts: dict[str, Any] = {"model": "ears", **fields}
    if file is not None:
        parts["file"] = ("anything.bin", file, "application/octet-stream")
    body, type_ = encode_multipart_formdata({name: each for name, each in parts.items() if each})
    return await post(home, path, body, type_, headers or {})


async def post(
    home: House, path: str, body: bytes, type_: str, headers: Mapping[str, str]
) -> Exchange:
    return await request(
        chat_app(home.front, Always(home.gateway), WebLimits()),
        "POST",
        path,
        headers={"authorization": f"Bearer {home.secret}", "content-type": type_, **headers},
        body=body,
    )


def sent_form(home: House) -> dict[str, list[bytes]]:
    [wire] = home.near.requests
    form: dict[str, list[bytes]] = {}
    for part in wire.form:
        form.setdefault(part.name, []).append(part.content)
    return form
