"""One request of each kind of work that is no chat, with what its providers answer.

They are what the tests of money under faults and of bills by unit send.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from urllib3.filepost import encode_multipart_formdata

from tests.asgi import Exchange, exchange
from tests.gateways import House, house
from tests.painters import BY_PICTURE, DRAWN, OPENAI, painter
from tests.pictures import data_url, png
from tests.scripted import Answer, Scripted, frame
from tests.unit.engine.scribes import FULL, SOUND, STREAM, VERBOSE
from tests.unit.ingress.media_samples import image
from tests.unit.routing.catalogs import provider
from tests.upstream.vectors import listed
from tollgate.core.work.kinds import WorkKind
from tollgate.ingress.formats import (
    DECISIONS,
    EMBEDDINGS,
    IMAGE_GENERATIONS,
    MODERATIONS,
    RERANK,
    SPEECH,
    TRANSCRIPTIONS,
)
from tollgate.providers.ports.base import Frame

MODEL: Final = "acme/works"
_BEDROCK: Final = {"codec": "bedrock", "transport": "bedrock_runtime", "region": "eu-west-1"}
_GUARDED: Final = {
    "usage": {"contentPolicyUnits": 2, "contentPolicyImageUnits": 1},
    "action": "NONE",
    "outputs": [],
    "assessments": [],
}
_SPOKEN: Final = {"output_tokens": 40, "total_tokens": 45}


@dataclass(frozen=True, kw_only=True)
class WorkCase:
    """A request, the model that serves it, and the answer to each request of its provider."""

    kind: WorkKind
    path: str
    body: Mapping[str, Any]
    answers: tuple[Answer, ...]
    cost_nano_usd: int
    model: Mapping[str, Any]
    row: Mapping[str, Any] = field(default_factory=provider)
    file: bytes | None = None  # Of a request that is a form.

    def ask(self, secret: str) -> Exchange:
        """Return the request with a key, in the form that its route takes."""
        fields = {**self.body, "model": MODEL}
        body, type_ = json.dumps(fields).encode(), "application/json"
        if self.file is not None:
            body, type_ = encode_multipart_formdata({**fields, "file": ("a.wav", self.file)})
        headers = {"authorization": f"Bearer {secret}", "content-type": type_}
        return exchange("POST", self.path, headers=headers, body=body)


def _model(kind: WorkKind, rates: Mapping[str, str], **facts: Any) -> dict[str, Any]:
    price = {name: Decimal(rate) for name, rate in rates.items()}
    priced = {"source": "made up", "checked": "2026-11-21", "input": Decimal(0), **price}
    offer = {"provider": "near", "upstream": "w-1", "price": priced, **facts.pop("offer", {})}
    return {"name": "A model", "kind": kind, "context": 10_000, "endpoints": (offer,), **facts}


CASES: Final[Mapping[str, WorkCase]] = {
    "vectors in two batches": WorkCase(
        kind="embedding",
        path=EMBEDDINGS.path,
        body={"input": ["first", "second"]},
        # Two batches: what one of them reports is not the whole.
        answers=([listed(1, tokens=3)], [listed(1, tokens=4, first=1)]),
        cost_nano_usd=7 * 500_000,
        model=_model("embedding", {"input": "500"}, vectors={"dimensions": 4}),
        row=provider(dialect={"embeddings": {"inputs_max": 1}}),
    ),
    "a ranking by units of search": WorkCase(
        kind="rerank",
        path=RERANK.path,
        body={"query": "q", "documents": ["a" * 600, "b"]},
        answers=(
            [
                frame(
                    {
                        "results": [
                            {"index": 0, "relevance_score": 0.5},
                            {"index": 1, "relevance_score": 0.25},
                        ],
                        "meta": {"billed_units": {"search_units": 1}},
                    }
                )
            ],
        ),
        cost_nano_usd=2_000_000,
        model=_model("rerank", {"search": "0.002"}),
    ),
    "judgements by a guardrail": WorkCase(
        kind="moderation",
        path=MODERATIONS.path,
        body={"input": [{"type": "text", "text": "a" * 1_500}, image(data_url(png()))]},
        answers=([frame(_GUARDED)],),
        cost_nano_usd=2 * 400_000 + 750_000,
        model=_model(
            "moderation",
            {"text_units": "0.40", "image": "0.00075"},
            input=("text", "image"),
            offer={"guardrail": {"id": "gr1", "version": "1"}},
        ),
        row=_BEDROCK,
    ),
    "decisions by the input": WorkCase(
        kind="decision",
        path=DECISIONS.path,
        body={"input": "Hurry!", "questions": [{"type": "predicate", "instructions": "Urgent"}]},
        answers=(
            [
                frame(
                    {
                        "answers": [{"type": "predicate", "name": None, "probability": 0.9}],
                        "usage": {
                            "input_tokens": 90,
                            "input_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 20},
                        },
                    }
                )
            ],
        ),
        cost_nano_usd=40 * 100 + 30 * 10 + 20 * 125,
        model=_model("decision", {"input": "0.1", "cache_read": "0.01", "cache_write": "0.125"}),
    ),
    "pictures by size": WorkCase(
        kind="image",
        path=IMAGE_GENERATIONS.path,
        body={"prompt": "two cats", "n": 2},
        answers=([frame({"created": 1, "data": [{"b64_json": DRAWN}] * 2})],),
        cost_nano_usd=40_000_000,
        model=painter(BY_PICTURE),
        row=provider(dialect={"images": OPENAI}),
    ),
    "speech by characters": WorkCase(
        kind="speech",
        path=SPEECH.path,
        body={"input": "Héllo!", "voice": "alloy"},
        # The second piece holds what would end a stream of events.
        answers=([Frame(data=b"ID3\x04"), Frame(data=b"[DONE]")],),
        cost_nano_usd=6 * 10_000,
        model=_model("speech", {"characters": "10"}),
    ),
    "speech by tokens, in events": WorkCase(
        kind="speech",
        path=SPEECH.path,
        body={"input": "Hello!", "voice": "alloy", "stream_format": "sse"},
        answers=(
            [
                frame({"type": "speech.audio.delta", "audio": b64encode(b"ID3").decode()}),
                frame({"type": "speech.audio.done", "usage": {"input_tokens": 5} | _SPOKEN}),
            ],
        ),
        cost_nano_usd=5 * 1_000 + 40 * 12_000,
        model=_model("speech", {"input": "1", "output": "12"}),
        row=provider(dialect={"speech": {"usage": "events"}}),
    ),
    "a transcript by seconds": WorkCase(
        kind="transcription",
        path=TRANSCRIPTIONS.path,
        body={"response_format": "verbose_json"},
        file=SOUND,
        answers=([frame(VERBOSE)],),
        # 11.5 seconds: each that began counts.
        cost_nano_usd=12 * 100_000,
        model=_model("transcription", {"audio_hour": "0.36"}, input=("audio",)),
        row=provider(dialect={"transcription": FULL}),
    ),
    "a transcript by tokens, streamed": WorkCase(
        kind="transcription",
        path=TRANSCRIPTIONS.path,
        body={"stream": "true"},
        file=SOUND,
        answers=(STREAM,),
        cost_nano_usd=10 * 2_500 + 120 * 6_000 + 9 * 10_000,
        model=_model(
            "transcription",
            {"input": "2.5", "audio_input": "6", "output": "10"},
            input=("audio",),
        ),
        row=provider(dialect={"transcription": FULL}),
    ),
}


async def home_of(case: WorkCase) -> House:
    """A gateway whose one model serves the case."""
    return await house(
        near=Scripted(*case.answers),
        providers={"near": dict(case.row), "far": provider()},
        models={MODEL: dict(case.model)},
        aliases={},
        routes={},
    )
